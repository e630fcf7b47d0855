package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/mkesdk/mkesdk/transport/internal/script"
)

// Output runs cmd and returns what it wrote to its standard output, less the final
// newline. If cmd.Stdout is set it gets a copy.
func Output(ctx context.Context, c Conn, cmd Command) (string, error) {
	var b bytes.Buffer
	if cmd.Stdout != nil {
		cmd.Stdout = io.MultiWriter(&b, cmd.Stdout)
	} else {
		cmd.Stdout = &b
	}
	err := c.Run(ctx, cmd)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// ReadFile returns the content of a file of the host, read as root. The error matches
// [fs.ErrNotExist] if there is no such file. See [Open] for large files.
func ReadFile(ctx context.Context, c Conn, name string) ([]byte, error) {
	if err := checkName("read", name); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err := c.Run(ctx, readCommand(name, &b))
	if err := readError(name, err); err != nil {
		return nil, err
	}
	return b.Bytes()[1:], nil
}

// Open opens a file of the host as root. The error matches [fs.ErrNotExist] if there is
// no such file. What is read streams from the host; a Read that returns io.EOF has seen
// the whole file. Close ends the transfer, and so does ctx.
func Open(ctx context.Context, c Conn, name string) (io.ReadCloser, error) {
	if err := checkName("open", name); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	r, w := io.Pipe()
	go func() {
		defer cancel()
		if err := readError(name, c.Run(ctx, readCommand(name, w))); err != nil {
			_ = w.CloseWithError(err)
			return
		}
		_ = w.Close()
	}()
	// The first byte says that the file is open.
	if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
		cancel()
		return nil, err
	}
	return &file{PipeReader: r, cancel: cancel}, nil
}

// A file is one that is being read.
type file struct {
	*io.PipeReader
	cancel context.CancelFunc
}

// Close ends the transfer.
func (f *file) Close() error {
	f.cancel()
	return f.PipeReader.Close()
}

// readCommand writes a byte and then the file to w.
func readCommand(name string, w io.Writer) Command {
	return Command{Args: []string{"/bin/sh", "-c", script.Read, "sh", name}, Sudo: true, Stdout: w, Effect: EffectNone}
}

// readError makes what ReadFile and Open return of what Run did.
func readError(name string, err error) error {
	if err == nil {
		return nil
	}
	if exit, ok := errors.AsType[*ExitError](err); ok && exit.Status == script.ExitNotExist {
		return fmt.Errorf("%s: %w", exit.Host, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist})
	}
	return fmt.Errorf("read %s: %w", name, err)
}

// checkName refuses names that would depend on where a shell happens to be.
func checkName(op, name string) error {
	if !path.IsAbs(name) || strings.ContainsRune(name, 0) || path.Clean(name) != name {
		return &fs.PathError{Op: op, Path: name, Err: fmt.Errorf("%w: want an absolute path that is clean", fs.ErrInvalid)}
	}
	return nil
}
