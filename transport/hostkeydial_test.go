package transport_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/mkesdk/mkesdk/transport"
	"github.com/mkesdk/mkesdk/transport/transporttest"
)

// A host has keys of several kinds, of which only one is known. It is the one to be asked for.
func TestHostKeyAlgorithms(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signers := []ssh.Signer{newKey(t)}
	for _, k := range []any{rsaKey, ecKey} {
		s, err := ssh.NewSignerFromKey(k)
		if err != nil {
			t.Fatal(err)
		}
		signers = append(signers, s)
	}
	cfg := serve(t, &transporttest.Server{HostKeys: signers})
	for _, s := range signers {
		host, port, _ := strings.Cut(cfg.Address, ":")
		cfg.HostKeys = knownHosts(t, lineFor("["+host+"]:"+port, s.PublicKey()))
		c, err := transport.Dial(t.Context(), cfg)
		if err != nil {
			t.Errorf("only %s is known: %v", s.PublicKey().Type(), err)
			continue
		}
		_ = c.Close()
	}
}

// Each hop is checked under its configured name, with its own policy; behind a bastion
// too a changed key is noticed.
func TestHostKeyBehindBastion(t *testing.T) {
	bastion, one, two := serve(t, &transporttest.Server{}), serve(t, &transporttest.Server{}), serve(t, &transporttest.Server{})
	file := filepath.Join(t.TempDir(), "known_hosts")
	accept, err := transport.AcceptNew(file)
	if err != nil {
		t.Fatal(err)
	}
	one.HostKeys, one.Bastion = accept, &bastion
	for range 2 {
		c, err := transport.Dial(t.Context(), one)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(one.Address, ":")
	if want := "[" + host + "]:" + port + " "; strings.Count(string(before), "\n") != 1 || !strings.HasPrefix(string(before), want) {
		t.Errorf("the file should have one line for %q:\n%s", want, before)
	}
	// The second server answers at the first one's address.
	proxied := one
	proxied.Auth = two.Auth
	bastion2 := serve(t, &transporttest.Server{Dial: redirect(one.Address, two.Address)})
	proxied.Bastion = &bastion2
	_, err = transport.Dial(t.Context(), proxied)
	mismatch, ok := errors.AsType[*transport.HostKeyError](err)
	if !ok || mismatch.Host != one.Address || len(mismatch.Known) != 1 {
		t.Errorf("another host at the same name: %v", err)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("the file has changed: %s", after)
	}
	// A bastion of the wrong key is no way, even if the host's is right.
	one.Bastion = &transport.Config{Address: bastion.Address, User: "root", Auth: bastion.Auth, HostKeys: transport.Pinned(newKey(t).PublicKey())}
	if _, err := transport.Dial(t.Context(), one); !errors.Is(err, transport.ErrHostKey) || !strings.Contains(err.Error(), bastion.Address) {
		t.Errorf("a bastion of the wrong key: %v", err)
	}
}
