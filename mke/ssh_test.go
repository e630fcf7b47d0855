package mke

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/transport"
	"github.com/mkesdk/mkesdk/transport/transporttest"
)

// keyFile writes a new private key.
func keyFile(t *testing.T) (name string, public ssh.PublicKey) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	name = filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return name, signer.PublicKey()
}

// TestSSHDial reaches two hosts through a bastion that they share, each with the key
// that its entry names.
func TestSSHDial(t *testing.T) {
	key, public := keyFile(t)
	jumpKey, jumpPublic := keyFile(t)
	hostKey, err := transporttest.NewHostKey()
	if err != nil {
		t.Fatal(err)
	}
	listen := func(s *transporttest.Server) net.Listener {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s.HostKeys = []ssh.Signer{hostKey}
		go func() { _ = s.Serve(context.WithoutCancel(t.Context()), l) }()
		t.Cleanup(func() { _ = s.Close() })
		return l
	}
	target := listen(&transporttest.Server{AuthorizedKeys: []ssh.PublicKey{public}})
	var mu sync.Mutex
	var hops []string
	bastion := listen(&transporttest.Server{AuthorizedKeys: []ssh.PublicKey{jumpPublic}, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		mu.Lock()
		hops = append(hops, addr)
		mu.Unlock()
		return new(net.Dialer).DialContext(ctx, network, target.Addr().String())
	}})
	var calls []transport.Call
	dials := 0
	s := &SSH{
		HostKeys: transport.Pinned(hostKey.PublicKey()),
		NetDial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			dials++
			return new(net.Dialer).DialContext(ctx, network, bastion.Addr().String())
		},
		Trace: func(c transport.Call) { mu.Lock(); defer mu.Unlock(); calls = append(calls, c) },
	}
	for _, address := range []string{"10.0.0.1", "fd00::2"} {
		c, err := s.Dial(t.Context(), hosts.SSH{Address: address, KeyPath: key, Bastion: &hosts.SSH{Address: "1.2.3.4", User: "jump", KeyPath: jumpKey}})
		if err != nil {
			t.Fatal(err)
		}
		if out, err := transport.Output(t.Context(), c, transport.Command{Args: []string{"echo", "hello"}}); err != nil || out != "hello" {
			t.Errorf("%s: %q, %v", address, out, err)
		}
		if want := "root@" + net.JoinHostPort(address, "22"); c.String() != want {
			t.Errorf("the host is called %s, want %s", c, want)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	mu.Lock()
	defer mu.Unlock()
	if dials != 1 || len(hops) != 2 || hops[0] != "10.0.0.1:22" || hops[1] != "[fd00::2]:22" || len(calls) != 2 {
		t.Errorf("%d connections to the bastion, hops %v, %d calls traced", dials, hops, len(calls))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestSSHRefuses returns no connection with an error, and needs host keys.
func TestSSHRefuses(t *testing.T) {
	key, _ := keyFile(t)
	c, err := (&SSH{}).Dial(t.Context(), hosts.SSH{Address: "10.0.0.1", KeyPath: key})
	if err == nil || c != nil {
		t.Errorf("got %v, %v", c, err)
	}
}

// TestSSHConfig asks for the sudo password only on the host itself, and passes to every
// hop its own user, port and key.
func TestSSHConfig(t *testing.T) {
	s := &SSH{
		HostKeys:      transport.InsecureIgnoreHostKey(),
		KeyPassphrase: func(context.Context, string) ([]byte, error) { return nil, errors.New("none") },
		SudoPassword:  func(context.Context) (string, error) { return "", errors.New("none") },
		AgentSocket:   "/agent",
	}
	c := s.config(hosts.SSH{Address: "a", KeyPath: "/a", Bastion: &hosts.SSH{Address: "b", User: "bee", Port: 2222, Bastion: &hosts.SSH{Address: "c"}}}.WithDefaults())
	type hop struct {
		address, user, key string
		port               int
		sudo               bool
	}
	var got []hop
	for at := &c; at != nil; at = at.Bastion {
		if at.HostKeys == nil || at.Auth.Passphrase == nil || at.Auth.AgentSocket != "/agent" {
			t.Errorf("hop %s: %+v", at.Address, at)
		}
		got = append(got, hop{at.Address, at.User, at.Auth.KeyFile, at.Port, at.SudoPassword != nil})
	}
	want := []hop{{"a", "root", "/a", 22, true}, {"b", "bee", "", 2222, false}, {"c", "root", "", 22, false}}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("got %v, want %v", got, want)
	}
}
