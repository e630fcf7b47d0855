package transport_test

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/mkesdk/mkesdk/transport"
)

// lineFor is a known_hosts line.
func lineFor(names string, key ssh.PublicKey) string {
	return names + " " + string(ssh.MarshalAuthorizedKey(key))
}

func writeFile(t testing.TB, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func knownHosts(t testing.TB, content string) transport.HostKeys {
	t.Helper()
	keys, err := transport.KnownHosts(writeFile(t, content))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestKnownHostsNames(t *testing.T) {
	key := newKey(t).PublicKey()
	for _, test := range []struct {
		names, addr string
		known       bool
	}{
		{"h1", "h1:22", true},
		{"h1", "H1:22", true},
		{"H1", "h1:22", true},
		{"h1", "h1:2222", false},
		{"[h1]:2222", "h1:2222", true},
		{"[h1]:2222", "h1:22", false},
		{"[h1]:22", "h1:22", true},
		{"a,h1,b", "h1:22", true},
		{"*.example.com", "a.b.example.com:22", true},
		{"*.example.com", "example.com:22", false},
		{"h?", "h1:22", true},
		{"h?", "h12:22", false},
		{"*,!h1", "h1:22", false},
		{"*,!h1", "h2:22", true},
		{"[*]:2222", "h1:2222", true},
		{"10.0.0.1", "10.0.0.1:22", true},
		{"10.0.0.1", "10.0.0.11:22", false},
		{"fd00::1", "[fd00::1]:22", true},
		{"FD00:0::1", "[fd00::1]:22", true},
		{"[fd00::1]:22", "[fd00::1]:22", true},
		{"[fd00:0::1]:2222", "[fd00::1]:2222", true},
		{"fd00::1", "[fd00::1]:2222", false},
		{knownhosts.HashHostname("h1"), "h1:22", true},
		{knownhosts.HashHostname("h1"), "h2:22", false},
		{knownhosts.HashHostname("[h1]:2222"), "h1:2222", true},
		{knownhosts.HashHostname("fd00::1"), "[fd00::1]:22", true},
		{knownhosts.HashHostname("[fd00::1]:2222"), "[fd00::1]:2222", true},
	} {
		err := knownHosts(t, "# comment\n\n"+lineFor(test.names, key)).Check(test.addr, key)
		if (err == nil) != test.known {
			t.Errorf("a line for %q, asked for %s: %v, want known %v", test.names, test.addr, err, test.known)
		}
	}
}

func TestKnownHostsErrors(t *testing.T) {
	a, b := newKey(t).PublicKey(), newKey(t).PublicKey()
	fa, fb := ssh.FingerprintSHA256(a), ssh.FingerprintSHA256(b)

	err := knownHosts(t, "garbage\n"+lineFor("h1", a)).Check("h1:22", b)
	mismatch, ok := errors.AsType[*transport.HostKeyError](err)
	if !ok || !errors.Is(err, transport.ErrHostKey) || mismatch.Host != "h1:22" || mismatch.Got != fb || len(mismatch.Known) != 1 || mismatch.Known[0] != fa {
		t.Errorf("a changed key: %#v", err)
	}
	for _, want := range []string{fa, fb, "h1:22", "known_hosts:2"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not mention %s", err, want)
		}
	}
	err = knownHosts(t, "garbage\n"+lineFor("h1", a)).Check("h2:22", b)
	if unknown, ok := errors.AsType[*transport.HostKeyError](err); !ok || len(unknown.Known) != 0 || !strings.Contains(err.Error(), "could not read") {
		t.Errorf("an unknown host: %v", err)
	}
	err = knownHosts(t, lineFor("h1", a)+"@revoked * "+string(ssh.MarshalAuthorizedKey(a))).Check("h1:22", a)
	if revoked, ok := errors.AsType[*transport.HostKeyError](err); !ok || !revoked.Revoked {
		t.Errorf("a revoked key: %v", err)
	}
	if _, err := transport.KnownHosts(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such file: %v", err)
	}
	if _, err := transport.KnownHosts(); err == nil {
		t.Error("KnownHosts without a file worked")
	}
}

// certFor makes a host certificate.
func certFor(t *testing.T, key ssh.PublicKey, authority ssh.Signer, kind uint32, principals ...string) *ssh.Certificate {
	t.Helper()
	cert := &ssh.Certificate{Key: key, CertType: kind, ValidPrincipals: principals, ValidBefore: ssh.CertTimeInfinity}
	if err := cert.SignCert(rand.Reader, authority); err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestKnownHostsCertificates(t *testing.T) {
	authority, other, key := newKey(t), newKey(t), newKey(t).PublicKey()
	trusted := "@cert-authority *.example.com " + string(ssh.MarshalAuthorizedKey(authority.PublicKey()))
	for _, test := range []struct {
		name string
		file string
		cert *ssh.Certificate
		ok   bool
	}{
		{"good", trusted, certFor(t, key, authority, ssh.HostCert, "h1.example.com"), true},
		{"wildcard", trusted, certFor(t, key, authority, ssh.HostCert, "*.example.com"), true},
		{"other host", trusted, certFor(t, key, authority, ssh.HostCert, "h2.example.com"), false},
		{"user's", trusted, certFor(t, key, authority, ssh.UserCert, "h1.example.com"), false},
		{"other authority", trusted, certFor(t, key, other, ssh.HostCert, "h1.example.com"), false},
		{"plain key known", lineFor("h1.example.com", key), certFor(t, key, other, ssh.HostCert, "h1.example.com"), true},
		{"revoked authority", trusted + "@revoked * " + string(ssh.MarshalAuthorizedKey(authority.PublicKey())),
			certFor(t, key, authority, ssh.HostCert, "h1.example.com"), false},
		{"revoked key", trusted + "@revoked * " + string(ssh.MarshalAuthorizedKey(key)), certFor(t, key, authority, ssh.HostCert, "h1.example.com"), false},
	} {
		if err := knownHosts(t, test.file).Check("h1.example.com:22", test.cert); (err == nil) != test.ok {
			t.Errorf("%s: %v, want accepted %v", test.name, err, test.ok)
		}
	}
	// The authority's own key is not a host key.
	if err := knownHosts(t, trusted).Check("h1.example.com:22", authority.PublicKey()); err == nil {
		t.Error("the key of an authority was taken for the host's")
	}
}

func TestAcceptNew(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dir", "known_hosts")
	a, b := newKey(t).PublicKey(), newKey(t).PublicKey()
	keys, err := transport.AcceptNew(file)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if err := keys.Check("h1:22", a); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := keys.Check("[fd00::1]:2222", b); err != nil {
		t.Error(err)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(before), "\n"); n != 2 {
		t.Errorf("the file has %d lines, want one for each host:\n%s", n, before)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v, %v; want 0600", info.Mode(), err)
	}
	again, err := transport.AcceptNew(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Check("h1:22", a); err != nil {
		t.Errorf("a key that was accepted before: %v", err)
	}
	if err := again.Check("h1:22", b); !errors.Is(err, transport.ErrHostKey) {
		t.Errorf("a changed key: %v", err)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("the file has changed to\n%s, %v", after, err)
	}
	// OpenSSH's own reader understands it, and an unfinished last line is not continued.
	if _, err := knownhosts.New(file); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(file, []byte(strings.TrimSpace(lineFor("h9", a))), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := again.Check("h2:22", b); err != nil {
		t.Error(err)
	}
	for _, addr := range []string{"h9:22", "h2:22"} {
		want := a
		if addr == "h2:22" {
			want = b
		}
		if k, err := transport.KnownHosts(file); err != nil || k.Check(addr, want) != nil {
			t.Errorf("%s is not known any more", addr)
		}
	}
}

func TestPinned(t *testing.T) {
	a, b := newKey(t).PublicKey(), newKey(t).PublicKey()
	byPrint, err := transport.PinnedFingerprint(ssh.FingerprintSHA256(a))
	if err != nil {
		t.Fatal(err)
	}
	for _, keys := range []transport.HostKeys{transport.Pinned(a), byPrint} {
		if err := keys.Check("h1:22", a); err != nil {
			t.Error(err)
		}
		if err := keys.Check("h1:22", b); !errors.Is(err, transport.ErrHostKey) {
			t.Errorf("another key: %v", err)
		}
	}
	if err := transport.Pinned().Check("h1:22", a); !errors.Is(err, transport.ErrHostKey) {
		t.Errorf("nothing pinned: %v", err)
	}
	for _, bad := range []string{"", "MD5:00:11", "SHA256:short"} {
		if _, err := transport.PinnedFingerprint(bad); err == nil {
			t.Errorf("PinnedFingerprint(%q) worked", bad)
		}
	}
}
