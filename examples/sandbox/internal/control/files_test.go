package control

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The certificates serve: each pair belongs together and its authority vouches for it.
func TestPKI(t *testing.T) {
	v, s := testVars(t), testConfig(t, oneController).Spec
	if err := together([]func() error{func() error { return etcdPKI(v, s) }, func() error { return kubePKI(v, s) }}); err != nil {
		t.Fatal(err)
	}
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(v.CertRootDir, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for _, l := range append(etcdLeaves(s), kubeLeaves(serverNames(s))...) {
		pair, err := tls.X509KeyPair(read(l.name+".crt"), read(l.name+".key"))
		if err != nil {
			t.Errorf("%s: %v", l.name, err)
			continue
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(read(l.ca + ".crt"))
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			t.Errorf("%s: %v", l.name, err)
		}
	}
	block, _ := pem.Decode(read("etcd/peer.crt"))
	peer, err := x509.ParseCertificate(block.Bytes)
	if err != nil || peer.Subject.CommonName != "10.99.0.11" || len(peer.IPAddresses) != 1 || peer.VerifyHostname("10.99.0.11") != nil {
		t.Errorf("peer.crt: %v %v", peer.Subject, peer.IPAddresses)
	}
	// A second start keeps the authorities and the service accounts' key.
	kept := map[string]string{}
	for _, name := range []string{"ca.crt", "ca.key", "etcd/ca.crt", "etcd/ca.key", "front-proxy-ca.crt", "sa.key", "sa.pub", "etcd/jwt.key"} {
		kept[name] = string(read(name))
	}
	server := string(read("server.crt"))
	if err := together([]func() error{func() error { return etcdPKI(v, s) }, func() error { return kubePKI(v, s) }}); err != nil {
		t.Fatal(err)
	}
	for name, was := range kept {
		if string(read(name)) != was {
			t.Errorf("%s was made anew", name)
		}
	}
	if string(read("server.crt")) == server {
		t.Error("server.crt was kept; k0s makes it anew at each start")
	}
	if left, err := filepath.Glob(filepath.Join(v.CertRootDir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// What the configuration asks for goes over what k0s would do.
func TestArguments(t *testing.T) {
	v, s := testVars(t), testConfig(t, oneController).Spec
	for want, args := range map[string][]string{
		"--v=3": apiServerArgs(v, s), "--node-monitor-grace-period=4s": managerArgs(v, s), "--name=C1": flags(etcdArgs(v, s, "C1")),
	} {
		if !strings.Contains(" "+strings.Join(args, " ")+" ", " "+want+" ") {
			t.Errorf("no %s in %q", want, args)
		}
	}
}

func TestUsers(t *testing.T) {
	etc := t.TempDir()
	before := map[string]string{"passwd": "root:x:0:0::/root:/bin/sh\ntaken:x:999:5::/:/bin/false", "group": "root:x:0:\nother:x:998:\n", "shadow": "root:*:::::::\n"}
	for name, text := range before {
		if err := os.WriteFile(filepath.Join(etc, name), []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	u := SystemUsers{Etcd: "etcd", APIServer: "kube-apiserver", Kine: "kube-apiserver"}
	if err := u.ensure(etc, "/var/lib/k0s"); err != nil {
		t.Fatal(err)
	}
	if a, ok := lookup(etc, "etcd"); !ok || a != 997 {
		t.Errorf("etcd is %d, %v", a, ok)
	}
	if a, ok := lookup(etc, "kube-apiserver"); !ok || a != 996 {
		t.Errorf("kube-apiserver is %d, %v", a, ok)
	}
	if err := u.ensure(etc, "/var/lib/k0s"); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(etc, "passwd"))
	if err != nil || strings.Count(string(data), "\n") != 4 || !strings.Contains(string(data), "etcd:x:997:997::/var/lib/k0s:") {
		t.Errorf("%s %v", data, err)
	}
	if err := u.delete(etc); err != nil {
		t.Fatal(err)
	}
	for name, text := range before {
		data, err := os.ReadFile(filepath.Join(etc, name))
		if err != nil || strings.TrimSpace(string(data)) != strings.TrimSpace(text) {
			t.Errorf("%s: %q %v", name, data, err)
		}
		if info, err := os.Stat(filepath.Join(etc, name)); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
}
