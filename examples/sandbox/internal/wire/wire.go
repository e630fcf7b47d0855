// Package wire carries small messages, with open files beside them, over a unix socket.
//
// The sandbox's processes share no namespace with who calls them, so a file, a terminal or a
// connected socket is handed over rather than named.
package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

const (
	// maxMessage bounds what a peer can make us allocate; the largest message is the list of a
	// host's files, a few megabytes.
	maxMessage = 256 << 20
	// maxFiles is the most files that go with one message: three standard ones and a spare.
	maxFiles = 4
)

// Send writes v as one message, with files beside it. The files stay the caller's to close.
func Send(c *net.UnixConn, v any, files ...*os.File) error {
	if len(files) > maxFiles {
		return fmt.Errorf("wire: %d files in one message, at most %d", len(files), maxFiles)
	}
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("wire: encode %T: %w", v, err)
	}
	if len(body) > maxMessage {
		return fmt.Errorf("wire: a message of %d bytes, at most %d", len(body), maxMessage)
	}
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = syscall.UnixRights(fds...)
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	if _, _, err := c.WriteMsgUnix(head, rights, nil); err != nil {
		return fmt.Errorf("wire: send: %w", err)
	}
	if _, err := c.Write(body); err != nil {
		return fmt.Errorf("wire: send: %w", err)
	}
	return nil
}

// Receive reads one message into v and returns the files that came with it, which are the
// caller's to close. It returns io.EOF where the peer has closed between two messages.
func Receive(c *net.UnixConn, v any) ([]*os.File, error) {
	head := make([]byte, 4)
	oob := make([]byte, syscall.CmsgSpace(4*maxFiles))
	n, oobn, _, _, err := c.ReadMsgUnix(head, oob)
	if err != nil {
		return nil, fmt.Errorf("wire: receive: %w", err)
	}
	if n == 0 {
		return nil, io.EOF
	}
	files, err := rights(oob[:oobn])
	if err != nil {
		return nil, err
	}
	if err := receiveBody(c, head, n, v); err != nil {
		closeAll(files)
		return nil, err
	}
	return files, nil
}

func receiveBody(c *net.UnixConn, head []byte, have int, v any) error {
	if _, err := io.ReadFull(c, head[have:]); err != nil {
		return fmt.Errorf("wire: receive: %w", cut(err))
	}
	size := binary.BigEndian.Uint32(head)
	if size > maxMessage {
		return fmt.Errorf("wire: peer announces a message of %d bytes, at most %d", size, maxMessage)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(c, body); err != nil {
		return fmt.Errorf("wire: receive: %w", cut(err))
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("wire: decode %T: %w", v, err)
	}
	return nil
}

// cut tells an end within a message from one between two.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func rights(oob []byte) ([]*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	msgs, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("wire: control message: %w", err)
	}
	var files []*os.File
	for _, m := range msgs {
		fds, err := syscall.ParseUnixRights(&m)
		if err != nil {
			closeAll(files)
			return nil, fmt.Errorf("wire: files: %w", err)
		}
		for _, fd := range fds {
			syscall.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// Failure is an error as it crosses the socket: its text, and the system's number where a
// caller may want to tell one from another (connection refused, no route).
type Failure struct {
	Text  string
	Errno int `json:",omitempty"`
}

// Fail makes err fit to be sent; nil stays nil.
func Fail(err error) *Failure {
	if err == nil {
		return nil
	}
	f := &Failure{Text: err.Error()}
	if n, ok := errors.AsType[syscall.Errno](err); ok {
		f.Errno = int(n)
	}
	return f
}

// Error implements error.
func (f *Failure) Error() string { return f.Text }

// Unwrap gives the system's number back, so that errors.Is(err, syscall.ECONNREFUSED) holds on
// this side too.
func (f *Failure) Unwrap() error {
	if f.Errno == 0 {
		return nil
	}
	return syscall.Errno(f.Errno)
}

// Err is f as an error, nil where there was none.
func (f *Failure) Err() error {
	if f == nil {
		return nil
	}
	return f
}
