package transport_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"net"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/mkesdk/mkesdk/transport"
	"github.com/mkesdk/mkesdk/transport/transporttest"
)

// newKey makes a key for someone to log in with.
func newKey(t testing.TB) ssh.Signer {
	t.Helper()
	_, signer := rawKey(t)
	return signer
}

// rawKey makes a key, and a signer with it.
func rawKey(t testing.TB) (ed25519.PrivateKey, ssh.Signer) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return key, signer
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

// redirect makes connections to one address go to another.
func redirect(from, to string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == from {
			addr = to
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
}
