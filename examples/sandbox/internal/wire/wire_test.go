package wire_test

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/wire"
)

// pair is a listening socket's two ends, in a directory with a name too long for a socket's.
func pair(t *testing.T) (client, server *net.UnixConn) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long-", 30))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s.sock")
	// One that a dead process left is no hindrance.
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := wire.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the socket's mode is %v, %v", st.Mode(), err)
	}
	client, err = wire.Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	server, err = l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(); _ = server.Close() })
	return client, server
}

func TestMessagesAndFiles(t *testing.T) {
	a, b := pair(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	big := strings.Repeat("x", 1<<20)
	go func() {
		_ = wire.Send(a, big, w)
		_ = wire.Send(a, "small")
		_ = w.Close()
		_ = a.Close()
	}()
	var got string
	files, err := wire.Receive(b, &got)
	if err != nil || got != big || len(files) != 1 {
		t.Fatalf("%d bytes, %d files, %v", len(got), len(files), err)
	}
	if _, err := io.WriteString(files[0], "through"); err != nil {
		t.Fatal(err)
	}
	_ = files[0].Close()
	if files, err := wire.Receive(b, &got); err != nil || got != "small" || len(files) != 0 {
		t.Errorf("second message: %q, %v", got, err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != "through" {
		t.Errorf("through the file came %q, %v", text, err)
	}
	if _, err := wire.Receive(b, &got); !errors.Is(err, io.EOF) {
		t.Errorf("after the last message: %v", err)
	}
}

func TestBadPeer(t *testing.T) {
	for name, raw := range map[string]string{
		"too long":        "\xff\xff\xff\xff",
		"cut in the size": "\x00\x00",
		"cut in the body": "\x00\x00\x00\x09\"a",
		"not JSON":        "\x00\x00\x00\x01{",
	} {
		a, b := pair(t)
		if _, err := io.WriteString(a, raw); err != nil {
			t.Fatal(err)
		}
		_ = a.Close()
		var v any
		if _, err := wire.Receive(b, &v); err == nil || errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v, want an error that is not the end", name, err)
		}
	}
}

func TestFailureKeepsTheNumber(t *testing.T) {
	f := wire.Fail(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)})
	if !errors.Is(f, syscall.ECONNREFUSED) {
		t.Errorf("%v is not a refused connection", f)
	}
	var none *wire.Failure
	if wire.Fail(nil).Err() != nil || none.Err() != nil {
		t.Error("no failure is an error")
	}
}
