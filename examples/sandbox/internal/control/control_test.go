package control

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
)

func testVars(t *testing.T) Vars {
	t.Helper()
	v, err := NewVars(Paths{DataDir: t.TempDir()}, "0123")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{v.EtcdCertDir, v.BinDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

func testConfig(t *testing.T, text string) Config {
	t.Helper()
	c, err := ParseConfig([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const oneController = `
spec:
  api: {address: 10.99.0.11, sans: [c1], extraArgs: {v: "3"}}
  storage: {etcd: {peerAddress: 10.99.0.11}}
  controllerManager: {extraArgs: {node-monitor-grace-period: 4s}}`

func TestParseConfig(t *testing.T) {
	c := testConfig(t, oneController)
	if err := c.Spec.Validate(); err != nil {
		t.Fatal(err)
	}
	if c.Spec.APIURL() != "https://10.99.0.11:6443" || c.Spec.JoinURL() != "https://10.99.0.11:9443" || c.Spec.PeerURL() != "https://10.99.0.11:2380" || c.Spec.LocalURL() != "https://localhost:6443" {
		t.Errorf("%+v", c.Spec)
	}
	if !strings.Contains(string(c.JSON), `"api":{"address":"10.99.0.11","extraArgs":{"v":"3"},"k0sApiPort":9443,"port":6443,"sans":["c1"],"ca":`) {
		t.Errorf("fields are not in k0s's order: %s", c.JSON)
	}
	c = testConfig(t, `spec: {api: {address: "fd00::1", externalAddress: lb.example, port: 7443}, storage: {etcd: {peerAddress: "fd00::1"}}}`)
	if c.Spec.APIURL() != "https://lb.example:7443" || c.Spec.PeerURL() != "https://[fd00::1]:2380" {
		t.Errorf("%s %s", c.Spec.APIURL(), c.Spec.PeerURL())
	}
	c = testConfig(t, `spec: {api: {address: 10.0.0.1, externalAddress: "lb.example:443"}}`)
	if c.Spec.APIURL() != "https://lb.example:443" {
		t.Error(c.Spec.APIURL())
	}
	for _, bad := range []string{"[1]", "a: b: c", "spec: {api: {port: many}}"} {
		if _, err := ParseConfig([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	for _, refused := range []string{"spec: {api: {address: nowhere}}", "spec: {api: {address: 10.0.0.1}, storage: {type: kine}}"} {
		if err := testConfig(t, refused).Spec.Validate(); err == nil {
			t.Errorf("%q is valid", refused)
		}
	}
	if _, err := LoadConfig(filepath.Join(t.TempDir(), "none.yaml")); err == nil {
		t.Error("a configuration that is not there was taken")
	}
}

func FuzzParseConfig(f *testing.F) {
	for _, s := range []string{oneController, "", "null", "a: &x {b: *x}", "spec: {api: }", "? [a]: b", "- 1", "spec: !!binary aGk="} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := ParseConfig(data); err == nil && !json.Valid(c.JSON) {
			t.Errorf("not JSON: %s", c.JSON)
		}
	})
}

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

func TestTokens(t *testing.T) {
	v, s := testVars(t), testConfig(t, oneController).Spec
	if err := os.WriteFile(filepath.Join(v.CertRootDir, "ca.crt"), []byte("the CA"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientset()
	token, err := CreateToken(t.Context(), c, v, s, RoleWorker, 15*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	conf, err := ParseWorkerToken(token + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if cl := conf.Clusters["k0s"]; cl == nil || cl.Server != "https://10.99.0.11:6443" || string(cl.CertificateAuthorityData) != "the CA" {
		t.Errorf("%+v", conf.Clusters)
	}
	id, _, _ := strings.Cut(conf.AuthInfos["kubelet-bootstrap"].Token, ".")
	secret, err := c.CoreV1().Secrets("kube-system").Get(t.Context(), "bootstrap-token-"+id, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ends, err := time.Parse(time.RFC3339, secret.StringData["expiration"])
	if err != nil || time.Until(ends) > 15*time.Minute || time.Until(ends) < 14*time.Minute {
		t.Errorf("expiration %q", secret.StringData["expiration"])
	}
	joining, err := CreateToken(t.Context(), c, v, s, RoleController, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseWorkerToken(joining); err == nil || !strings.Contains(err.Error(), "wrong token type controller-bootstrap") {
		t.Errorf("a worker took a controller's token: %v", err)
	}
	if err := InvalidateToken(t.Context(), c, id); err != nil {
		t.Fatal(err)
	}
	if err := InvalidateToken(t.Context(), c, id); err != nil {
		t.Errorf("again: %v", err)
	}
}

func FuzzParseWorkerToken(f *testing.F) {
	token, err := encodeToken([]byte(`{"current-context":"k0s","contexts":[{"name":"k0s","context":{"user":"kubelet-bootstrap"}}]}`))
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{token, token[:20], "", "H4sIAAAAAAAC/", "not base64"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if conf, err := ParseWorkerToken(s); err == nil && conf.Contexts[conf.CurrentContext] == nil {
			t.Errorf("%q has no context", s)
		}
	})
}

// A controller that starts takes back its wish to leave and keeps what else its resource says.
func TestAnnounceMember(t *testing.T) {
	old := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "etcd.k0sproject.io/v1beta1", "kind": "EtcdMember",
		"metadata": map[string]any{"name": "c1", "labels": map[string]any{labelShutdown: "old", "mine": "kept"}},
		"spec":     map[string]any{"leave": true},
		"status": map[string]any{"memberID": "1", "peerAddress": "10.0.0.9", "message": "No such member ID", "reconcileStatus": "Success",
			"conditions": []any{map[string]any{"type": "Joined", "status": "False", "lastTransitionTime": "2020-01-01T00:00:00Z"}}},
	}}
	for name, c := range map[string]*dynamicfake.FakeDynamicClient{
		"new": dynamicClient(), "again": dynamicClient(old),
	} {
		if err := announceMember(t.Context(), c, "c1", "4711", "10.99.0.11", member{id: 0x0a1b, name: "C1"}); err != nil {
			t.Fatal(err)
		}
		got, err := c.Resource(etcdMembers).Get(t.Context(), "c1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if l := got.GetLabels(); l[labelLease] != "k0s-ctrl-c1" || l[labelShutdownOnLeave] != "4711" || l[labelShutdown] != "" || (name == "again") != (l["mine"] == "kept") {
			t.Errorf("%s: labels %v", name, l)
		}
		if _, found, _ := unstructured.NestedBool(got.Object, "spec", "leave"); found {
			t.Errorf("%s: it still wants to leave", name)
		}
		status := got.Object["status"].(map[string]any)
		cond := status["conditions"].([]any)[0].(map[string]any)
		if status["memberID"] != "a1b" || status["peerAddress"] != "10.99.0.11" || cond["status"] != "True" || cond["lastTransitionTime"] == "2020-01-01T00:00:00Z" {
			t.Errorf("%s: %v", name, status)
		}
		if name == "again" && status["reconcileStatus"] != "Success" {
			t.Errorf("%s: %v", name, status)
		}
	}
}

func dynamicClient(objects ...runtime.Object) *dynamicfake.FakeDynamicClient {
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{etcdMembers: "EtcdMemberList", controlNodes: "ControlNodeList"}, objects...)
}

func TestMissingRole(t *testing.T) {
	for _, tc := range []struct {
		labels map[string]string
		want   string
	}{
		{nil, ""},
		{map[string]string{LabelRole: "control-plane"}, "node-role.kubernetes.io/control-plane"},
		{map[string]string{LabelRole: "control-plane", "node-role.kubernetes.io/mine": ""}, ""},
	} {
		if got := missingRole(tc.labels); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.labels, got, tc.want)
		}
	}
}

// The built-in manifests are objects with a kind and a name, and applying them twice is no error.
func TestManifests(t *testing.T) {
	c := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	for range 2 {
		if err := applyObjects(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for _, a := range c.Actions()[:7] {
		names = append(names, a.GetResource().Resource)
	}
	want := []string{"customresourcedefinitions", "customresourcedefinitions", "customresourcedefinitions", "customresourcedefinitions", "clusterrolebindings", "clusterrolebindings", "clusterrolebindings"}
	if !reflect.DeepEqual(names, want) {
		t.Errorf("%q", names)
	}
}
