package transport_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/mkesdk/mkesdk/transport"
	"github.com/mkesdk/mkesdk/transport/transporttest"
)

// newKey makes a key for someone to log in with.
func newKey(t testing.TB) ssh.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// serve runs s on the loopback for as long as the test does, and returns the way to it.
func serve(t testing.TB, s *transporttest.Server) transport.Config {
	t.Helper()
	key := newKey(t)
	s.AuthorizedKeys = append(s.AuthorizedKeys, key.PublicKey())
	if len(s.HostKeys) == 0 {
		s.HostKeys = []ssh.Signer{newKey(t)}
	}
	var pins []ssh.PublicKey
	for _, k := range s.HostKeys {
		pins = append(pins, k.PublicKey())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(context.WithoutCancel(t.Context()), l) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return transport.Config{
		Address: l.Addr().String(), User: "root", Auth: transport.Auth{Signers: []ssh.Signer{key}}, HostKeys: transport.Pinned(pins...),
	}
}

// dial connects for as long as the test runs.
func dial(t testing.TB, cfg transport.Config) *transport.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, err := transport.Dial(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestRun(t *testing.T) {
	c := dial(t, serve(t, &transporttest.Server{}))
	out, err := transport.Output(t.Context(), c, transport.Command{Args: []string{"printf", "%s\n", "a 'b'\n$c"}})
	if err != nil || out != "a 'b'\n$c" {
		t.Errorf("Output = %q, %v", out, err)
	}
	var stdout bytes.Buffer
	err = c.Run(t.Context(), transport.Command{Args: []string{"cat"}, Stdin: strings.NewReader("hello\x00world"), Stdout: &stdout})
	if err != nil || stdout.String() != "hello\x00world" {
		t.Errorf("cat = %q, %v", &stdout, err)
	}
	err = c.Run(t.Context(), transport.Command{Args: []string{"sh", "-c", "echo oops >&2; exit 3"}})
	exit, ok := errors.AsType[*transport.ExitError](err)
	if !ok || exit.Status != 3 || exit.Stderr != "oops\n" {
		t.Errorf("exit 3: %#v", err)
	}
	err = c.Run(t.Context(), transport.Command{Args: []string{"sh", "-c", "kill -KILL $$"}})
	exit, ok = errors.AsType[*transport.ExitError](err)
	if !ok || exit.Status != -1 || exit.Signal != "KILL" {
		t.Errorf("kill: %#v", err)
	}
}

func TestFiles(t *testing.T) {
	c := dial(t, serve(t, &transporttest.Server{}))
	name := t.TempDir() + "/a file"
	for _, content := range []string{"", "x", "hello\n", strings.Repeat("0123456789abcdef", 200_000)} {
		if err := transport.WriteFile(t.Context(), c, name, strings.NewReader(content), transport.FileOptions{Mode: 0o640}); err != nil {
			t.Fatal(err)
		}
		got, err := transport.ReadFile(t.Context(), c, name)
		if err != nil || string(got) != content {
			t.Fatalf("ReadFile = %d bytes, %v; want %d", len(got), err, len(content))
		}
	}
	if _, err := transport.ReadFile(t.Context(), c, name+"x"); err == nil {
		t.Error("read what is not there")
	}
	r, err := transport.Open(t.Context(), c, name)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(r); err != nil || len(data) != 3_200_000 {
		t.Errorf("Open: %d bytes, %v", len(data), err)
	}
}

func TestBastion(t *testing.T) {
	b := serve(t, &transporttest.Server{})
	c := serve(t, &transporttest.Server{})
	c.Bastion = &b
	conn := dial(t, c)
	if out, err := transport.Output(t.Context(), conn, transport.Command{Args: []string{"echo", "hi"}, Sudo: true}); err != nil || out != "hi" {
		t.Errorf("Output = %q, %v", out, err)
	}
}
