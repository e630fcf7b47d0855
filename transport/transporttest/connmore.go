package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/transport"
)

// testMany runs more commands at once than a host has sessions.
func testMany(t *testing.T, c transport.Conn) {
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			want := fmt.Sprintf("command %d", i)
			out, err := transport.Output(t.Context(), c, transport.Command{Args: []string{"printf", "%s", want}})
			if err != nil || out != want {
				t.Errorf("got %q, %v; want %q", out, err, want)
			}
		})
	}
	wg.Wait()
}

// echo answers every connection with what it sends, until the test ends.
func echo(t *testing.T, network, addr string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return l
}

func testDial(t *testing.T, c transport.Conn) {
	short, err := os.MkdirTemp("", "sock") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(short) // a temporary directory
	for _, l := range []net.Listener{echo(t, "tcp", "127.0.0.1:0"), echo(t, "unix", filepath.Join(short, "s"))} {
		ctx, cancel := context.WithCancel(t.Context())
		conn, err := c.Dial(ctx, l.Addr().Network(), l.Addr().String())
		cancel() // the connection outlives it
		if err != nil {
			t.Errorf("dial %s: %v", l.Addr(), err)
			continue
		}
		sent := bytes.Repeat([]byte("ping\x00"), 100_000)
		go func() { _, _ = conn.Write(sent) }()
		back := make([]byte, len(sent))
		if _, err := io.ReadFull(conn, back); err != nil || !bytes.Equal(back, sent) {
			t.Errorf("%s: the echo is another, or %v", l.Addr(), err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
			t.Errorf("SetReadDeadline: %v", err)
		}
		if _, err := conn.Read(back); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a read past its deadline: %v", err)
		}
		if conn.RemoteAddr() == nil || conn.LocalAddr() == nil {
			t.Error("the connection has no addresses")
		}
		if err := conn.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

func testDialFails(t *testing.T, c transport.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		name, network, addr string
		ctx                 context.Context
	}{
		{"nobody listens", "tcp", addr, t.Context()},
		{"an unknown network", "carrier pigeon", addr, t.Context()},
		{"a context that is over", "tcp", addr, over},
	} {
		conn, err := c.Dial(test.ctx, test.network, test.addr)
		if err == nil {
			_ = conn.Close()
			t.Errorf("%s: it worked", test.name)
		} else if errors.Is(err, net.ErrClosed) || errors.Is(err, transport.ErrConnectionLost) {
			t.Errorf("%s: %v, but the connection to the host is fine", test.name, err)
		}
	}
}

func testFiles(t *testing.T, c transport.Conn, dir string) {
	ctx, name := t.Context(), dir+"/a 'file'"
	if _, err := transport.ReadFile(ctx, c, name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadFile of no file: %v", err)
	}
	if _, err := transport.Open(ctx, c, name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open of no file: %v", err)
	}
	for _, content := range []string{"", "x", "line\n", "\x00\xff\n\n", strings.Repeat("0123456789abcdef", 100_000)} {
		var told int64
		o := transport.FileOptions{Mode: 0o640, Size: int64(len(content)), Progress: func(done int64) { told = done }}
		if err := transport.WriteFile(ctx, c, name, strings.NewReader(content), o); err != nil {
			t.Fatal(err)
		}
		if told != int64(len(content)) {
			t.Errorf("Progress ended at %d of %d", told, len(content))
		}
		got, err := transport.ReadFile(ctx, c, name)
		if err != nil || string(got) != content {
			t.Errorf("ReadFile gave %d bytes, %v; want the %d that were written", len(got), err, len(content))
		}
	}
	r, err := transport.Open(ctx, c, name)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || len(got) != 1_600_000 {
		t.Errorf("Open gave %d bytes, %v", len(got), err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "relative", "/a/../b", "/a//b", "/nul\x00"} {
		if _, err := transport.ReadFile(ctx, c, bad); err == nil {
			t.Errorf("ReadFile(%q) worked", bad)
		}
		if err := transport.WriteFile(ctx, c, bad, strings.NewReader(""), transport.FileOptions{}); err == nil {
			t.Errorf("WriteFile(%q) worked", bad)
		}
	}
}

func testFilesStayWhole(t *testing.T, c transport.Conn, dir string) {
	ctx, name := t.Context(), dir+"/whole"
	if err := transport.WriteFile(ctx, c, name, strings.NewReader("old"), transport.FileOptions{}); err != nil {
		t.Fatal(err)
	}
	bad := errors.New("the source broke")
	for what, err := range map[string]error{
		"a reader that fails":     transport.WriteFile(ctx, c, name, errReader{strings.NewReader("new"), bad}, transport.FileOptions{}),
		"content that is short":   transport.WriteFile(ctx, c, name, strings.NewReader("new"), transport.FileOptions{Size: 4}),
		"content of other digest": transport.WriteFile(ctx, c, name, strings.NewReader("new"), transport.FileOptions{SHA256: strings.Repeat("ab", 32)}),
	} {
		if err == nil {
			t.Errorf("%s is written", what)
		}
		if got, err := transport.ReadFile(ctx, c, name); err != nil || string(got) != "old" {
			t.Errorf("after %s the file is %q, %v", what, got, err)
		}
	}
}

func testClose(t *testing.T, c transport.Conn) {
	l := echo(t, "tcp", "127.0.0.1:0")
	conn, err := c.Dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	cmd := sh("echo running; sleep 60")
	cmd.Stdout = w
	done := make(chan error, 1)
	go func() { done <- c.Run(t.Context(), cmd) }()
	if _, err := io.ReadFull(r, make([]byte, len("running\n"))); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := c.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("the running command: %v; want net.ErrClosed", err)
	}
	if took := time.Since(start); took > 2*prompt {
		t.Errorf("closing took %v", took)
	}
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection through the host goes on: %v", err)
	}
	if err := c.Run(t.Context(), sh("exit 0")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Run after Close: %v; want net.ErrClosed", err)
	}
	if _, err := c.Dial(t.Context(), "tcp", l.Addr().String()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Dial after Close: %v; want net.ErrClosed", err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("Close again: %v", err)
	}
}
