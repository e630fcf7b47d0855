package transport_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/mkesdk/mkesdk/transport"
	"github.com/mkesdk/mkesdk/transport/transporttest"
)

// serveAgent runs an SSH agent, and counts what it is asked.
func serveAgent(t *testing.T, keys ...any) (socket string) {
	t.Helper()
	ring := agent.NewKeyring()
	for _, k := range keys {
		if err := ring.Add(agent.AddedKey{PrivateKey: k}); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp("", "agent") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
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
				_ = agent.ServeAgent(ring, conn)
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
		_ = os.RemoveAll(dir)
	})
	return socket
}

// serveFor runs a server that lets in only key.
func serveFor(t *testing.T, key ssh.PublicKey) (transport.Config, *transporttest.Server) {
	t.Helper()
	s := &transporttest.Server{}
	cfg := serve(t, s)
	s.AuthorizedKeys = []ssh.PublicKey{key}
	cfg.Auth = transport.Auth{}
	return cfg, s
}

func logsIn(t *testing.T, cfg transport.Config) error {
	t.Helper()
	c, err := transport.Dial(t.Context(), cfg)
	if err == nil {
		_ = c.Close()
	}
	return err
}

func TestKeyFiles(t *testing.T) {
	dir := t.TempDir()
	plain, locked := newKeyFile(t, filepath.Join(dir, "plain"), ""), newKeyFile(t, filepath.Join(dir, "locked"), "open sesame")
	t.Setenv("HOME", dir)

	cfg, _ := serveFor(t, plain.PublicKey())
	for _, name := range []string{filepath.Join(dir, "plain"), "~/plain"} {
		cfg.Auth = transport.Auth{KeyFile: name}
		if err := logsIn(t, cfg); err != nil {
			t.Errorf("key file %s: %v", name, err)
		}
	}
	cfg, _ = serveFor(t, locked.PublicKey())
	cfg.Auth = transport.Auth{KeyFile: "~/locked"}
	if err := logsIn(t, cfg); !errors.Is(err, transport.ErrAuth) || !strings.Contains(err.Error(), "encrypted") {
		t.Errorf("an encrypted key and nobody to ask: %v", err)
	}
	for passphrase, ok := range map[string]bool{"open sesame": true, "wrong": false} {
		var asked atomic.Int32
		cfg.Auth.Passphrase = func(_ context.Context, file string) ([]byte, error) {
			asked.Add(1)
			if file != filepath.Join(dir, "locked") {
				t.Errorf("asked for the passphrase of %s", file)
			}
			return []byte(passphrase), nil
		}
		var d transport.Dialer
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				c, err := d.Dial(t.Context(), cfg)
				if (err == nil) != ok || err != nil && !errors.Is(err, transport.ErrAuth) {
					t.Errorf("passphrase %q: %v", passphrase, err)
				}
				if err == nil {
					_ = c.Close()
				} else if strings.Contains(err.Error(), passphrase+"\"") {
					t.Errorf("the passphrase shows: %v", err)
				}
			})
		}
		wg.Wait()
		if n := asked.Load(); n != 1 {
			t.Errorf("asked %d times for one passphrase", n)
		}
	}
	for name, content := range map[string]string{"garbage": "no key", "empty": ""} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg.Auth = transport.Auth{KeyFile: file}
		if err := logsIn(t, cfg); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAgent(t *testing.T) {
	dir := t.TempDir()
	raw, signer := rawKey(t)
	decoy, _ := rawKey(t)
	cfg, _ := serveFor(t, signer.PublicKey())
	socket := serveAgent(t, decoy, raw)
	cfg.Auth = transport.Auth{AgentSocket: socket}
	if err := logsIn(t, cfg); err != nil {
		t.Errorf("the agent's second key: %v", err)
	}
	// The key file's key is in the agent: nobody is asked for a passphrase.
	file := filepath.Join(dir, "locked")
	block, err := ssh.MarshalPrivateKeyWithPassphrase(raw, "", []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, pemText(block), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.Auth = transport.Auth{KeyFile: file, AgentSocket: socket, Passphrase: func(context.Context, string) ([]byte, error) {
		t.Error("asked for a passphrase that the agent makes unnecessary")
		return nil, errors.New("no")
	}}
	if err := logsIn(t, cfg); err != nil {
		t.Errorf("an encrypted key that the agent holds: %v", err)
	}
	// So it is if there is only the public half.
	pub := filepath.Join(dir, "key.pub")
	if err := os.WriteFile(pub, ssh.MarshalAuthorizedKey(signer.PublicKey()), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.Auth = transport.Auth{KeyFile: pub, AgentSocket: socket}
	if err := logsIn(t, cfg); err != nil {
		t.Errorf("a public key whose private half the agent holds: %v", err)
	}
	cfg.Auth.AgentSocket = serveAgent(t, decoy)
	if err := logsIn(t, cfg); !errors.Is(err, transport.ErrAuth) {
		t.Errorf("a public key alone: %v", err)
	}
	for what, socket := range map[string]string{"no keys": serveAgent(t), "no agent": filepath.Join(dir, "none")} {
		cfg.Auth = transport.Auth{AgentSocket: socket}
		if err := logsIn(t, cfg); !errors.Is(err, transport.ErrAuth) {
			t.Errorf("an agent with %s: %v", what, err)
		}
	}
}

// A key that is given is the only one offered; of an agent's, no more than a server
// bears. The error says how many were tried.
func TestOffers(t *testing.T) {
	var tried atomic.Int32
	s := &transporttest.Server{MaxAuthTries: 20, Authorize: func(string, ssh.PublicKey) bool { tried.Add(1); return false }}
	cfg := serve(t, s)
	s.AuthorizedKeys = nil
	var raws []any
	for range 9 {
		raw, _ := rawKey(t)
		raws = append(raws, raw)
	}
	socket := serveAgent(t, raws...)
	file := filepath.Join(t.TempDir(), "key")
	newKeyFile(t, file, "")
	for _, test := range []struct {
		auth  transport.Auth
		tried int32
		says  string
	}{
		{transport.Auth{KeyFile: file, AgentSocket: socket}, 1, "the key that was tried"},
		{transport.Auth{AgentSocket: socket}, 6, "all 6 keys that were tried"},
		{transport.Auth{Signers: []ssh.Signer{newKey(t), newKey(t)}, AgentSocket: socket}, 2, "all 2 keys that were tried"},
	} {
		tried.Store(0)
		cfg.Auth = test.auth
		err := logsIn(t, cfg)
		if !errors.Is(err, transport.ErrAuth) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("got %v, want ErrAuth and %q", err, test.says)
		}
		if n := tried.Load(); n != test.tried {
			t.Errorf("%d keys were tried, want %d", n, test.tried)
		}
	}
	// A server that bears fewer cuts us off, which is still a matter of authentication.
	few := &transporttest.Server{MaxAuthTries: 2}
	cfg = serve(t, few)
	cfg.Auth = transport.Auth{AgentSocket: socket}
	if err := logsIn(t, cfg); !errors.Is(err, transport.ErrAuth) || !strings.Contains(err.Error(), "tried") {
		t.Errorf("a server that bears two tries: %v", err)
	}
}

func TestOffersOpenSSH(t *testing.T) {
	cfg := openSSH(t)
	var raws []any
	for range 9 {
		raw, _ := rawKey(t)
		raws = append(raws, raw)
	}
	cfg.Auth = transport.Auth{AgentSocket: serveAgent(t, raws...)}
	if err := logsIn(t, cfg); !errors.Is(err, transport.ErrAuth) || !strings.Contains(err.Error(), "all 6 keys") {
		t.Errorf("got %v, want ErrAuth after 6 keys", err)
	}
}

func TestCertificate(t *testing.T) {
	authority := newKey(t)
	dir := t.TempDir()
	key := newKeyFile(t, filepath.Join(dir, "key"), "")
	cert := certFor(t, key.PublicKey(), authority, ssh.UserCert, "root")
	cfg, s := serveFor(t, authority.PublicKey())
	cfg.Auth = transport.Auth{KeyFile: filepath.Join(dir, "key")}
	if err := logsIn(t, cfg); !errors.Is(err, transport.ErrAuth) {
		t.Errorf("without the certificate: %v", err)
	}
	name := filepath.Join(dir, "key-cert.pub")
	if err := os.WriteFile(name, ssh.MarshalAuthorizedKey(cert), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := logsIn(t, cfg); err != nil {
		t.Errorf("with the certificate: %v", err)
	}
	s.AuthorizedKeys = []ssh.PublicKey{key.PublicKey()}
	if err := logsIn(t, cfg); err != nil {
		t.Errorf("a certificate that is not trusted beside a key that is: %v", err)
	}
	other := certFor(t, newKey(t).PublicKey(), authority, ssh.UserCert, "root")
	if err := os.WriteFile(name, ssh.MarshalAuthorizedKey(other), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := logsIn(t, cfg); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("a certificate for another key: %v", err)
	}
}

func TestRSA(t *testing.T) {
	raw, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(raw)
	if err != nil {
		t.Fatal(err)
	}
	cfg := openSSH(t, "PubkeyAcceptedAlgorithms rsa-sha2-256,rsa-sha2-512")
	authorized := strings.TrimSuffix(cfg.Auth.KeyFile, "client") + "authorized"
	if err := os.WriteFile(authorized, ssh.MarshalAuthorizedKey(signer.PublicKey()), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, auth := range map[string]transport.Auth{
		"a signer": {Signers: []ssh.Signer{signer}}, "an agent": {AgentSocket: serveAgent(t, raw)},
	} {
		cfg.Auth = auth
		if err := logsIn(t, cfg); err != nil {
			t.Errorf("rsa with %s: %v", what, err)
		}
	}
}
