package control

import (
	"encoding/json"
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
