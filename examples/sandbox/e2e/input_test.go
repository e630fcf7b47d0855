package e2e

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/cert"
)

// A mistake is something that a person may get wrong, or find broken.
type mistake struct {
	name string
	// arrange makes it so, and returns the command line and how it is mended, or nil.
	arrange func(b *bed) (args []string, mend func())
	code    int
	says    []string // what the one error has to say: the place, and what would be right
}

// testBadInput gets wrong what a person may get wrong. Each gives one clear error, and nothing is
// changed.
func testBadInput(t *testing.T, b *bed) {
	b.ensure("h1")
	for _, m := range mistakes() {
		t.Run(m.name, func(t *testing.T) {
			b := b.part(t)
			args, mend := m.arrange(b)
			if mend != nil {
				defer mend()
			}
			w := b.world("h1", "h3", "c1")
			r := b.run(args...)
			if r.code != m.code {
				t.Errorf("exit code %d, want %d", r.code, m.code)
			}
			for _, part := range m.says {
				if !strings.Contains(r.err, part) {
					t.Errorf("the error does not say %q", part)
				}
			}
			if n := strings.Count(r.err, "mkectl node add: "); n != 1 {
				t.Errorf("%d errors, want one", n)
			}
			if strings.Contains(r.out+r.err, "goroutine ") {
				t.Error("it panicked")
			}
			if t.Failed() {
				t.Logf("mkectl %s\n%s\n%s", strings.Join(args, " "), r.out, r.err)
			}
			b.unchanged(w, mkectlAgent)
		})
	}
}

// mistakes are those that testBadInput makes.
func mistakes() []mistake {
	return append([]mistake{
		{"empty hosts.yaml", file(""), 2, []string{"hosts.yaml: ", "empty", "under the key hosts"}},
		{"tabs", file("hosts:\n\t- role: worker\n"), 2, []string{"hosts.yaml:2:1: ", "tab", "spaces"}},
		{"duplicate hosts", file("hosts:\n" + entry("10.99.0.23") + entry("10.99.0.23")), 2, []string{"hosts.yaml:8:14: ", "10.99.0.23", "line 4", "once"}},
		{"unknown key", file("hosts:\n" + strings.Replace(entry("10.99.0.23"), "address", "adress", 1)), 2, []string{"hosts.yaml:4:5: ", "adress", `did you mean "address"?`}},
		{"no hosts.yaml", args("--hosts-path", "/nowhere/hosts.yaml"), 2, []string{"--hosts-path /nowhere/hosts.yaml: ", "no such file"}},
		{"no kubeconfig", args("--kubeconfig", "/nowhere/kubeconfig", "--hosts-path", "hosts.yaml"), 2, []string{"--kubeconfig /nowhere/kubeconfig: ", "no such file", "want the kubeconfig of the cluster"}},
		{"unknown flag", args("--hosts-file", "hosts.yaml"), 2, []string{"--hosts-file", "mkectl node add --help"}},
		{"another role", args("--scope", "controller+worker", "--hosts-path", "hosts.yaml"), 2, []string{"--scope controller+worker: ", "workers only"}},
	}, mistakesOnTheWay()...)
}

// mistakesOnTheWay show only once something is dialed.
func mistakesOnTheWay() []mistake {
	return []mistake{
		{"unreadable key file", key("/nowhere/key", nil), 1, []string{"10.99.0.23", "/nowhere/key", "no such file", "want a private key"}},
		{"key file that holds no key", key("", func(*bed) []byte { return []byte("garbage\n") }), 1, []string{"10.99.0.23", "/key", "private key"}},
		{"wrong key", key("", newKey), 1, []string{"10.99.0.23", "user root", "/key", "authorized_keys"}},
		{"changed host key", changedHostKey, 1, []string{"10.99.0.23:22: host key is SHA256:", "known_hosts:", "something else answers"}},
		{"kubeconfig of another cluster", otherKubeconfig, 1, []string{"https://10.99.0.11:6443", "kubeconfig of another cluster?"}},
		{"helper is down", helperDown, 1, []string{"no control plane host can be used as the helper", "10.99.0.11", "connection refused"}},
		{"missing artifact", missingArtifact, 1, []string{"10.99.0.2:5000/nowhere/k0s:v", "spec.registries.imageRegistry"}},
		{"an upgrade is in progress", upgrading, 1, []string{"MkeConfig mke/mke", "Upgrading", "to 4.3.0", "not in a stable state"}},
		{"k0s of another version", otherVersion, 1, []string{"10.99.0.21 (h1)", "v1.35.4+k0s.0", "want k0s v1.36.3+k0s.2"}},
	}
}

// entry is a host of a hosts.yaml.
func entry(address string) string {
	return fmt.Sprintf("- role: worker\n  ssh:\n    address: %s\n    keyPath: KEY\n", address)
}

// hostsFile writes a hosts.yaml.
func (b *bed) hostsFile(text, key string) string {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), "hosts.yaml")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "KEY", key)), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

func args(list ...string) func(*bed) ([]string, func()) {
	return func(*bed) ([]string, func()) { return append([]string{"node", "add"}, list...), nil }
}

// file is about what is in hosts.yaml.
func file(text string) func(*bed) ([]string, func()) {
	return func(b *bed) ([]string, func()) { return args("--hosts-path", b.hostsFile(text, b.Key()))(b) }
}

// key is about the private key for the host: that at path, or one with that content.
func key(path string, content func(*bed) []byte) func(*bed) ([]string, func()) {
	return func(b *bed) ([]string, func()) {
		path := path
		if content != nil {
			path = filepath.Join(b.t.TempDir(), "key")
			if err := os.WriteFile(path, content(b), 0o600); err != nil {
				b.t.Fatal(err)
			}
		}
		return args("--hosts-path", b.hostsFile("hosts:\n"+entry("10.99.0.23"), path))(b)
	}
}

// newKey is a private key that no host knows.
func newKey(b *bed) []byte {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		b.t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		b.t.Fatal(err)
	}
	return pem.EncodeToMemory(block)
}

// changedHostKey has a known_hosts with another key for h3.
func changedHostKey(b *bed) ([]string, func()) {
	signer, err := ssh.ParsePrivateKey(newKey(b))
	if err != nil {
		b.t.Fatal(err)
	}
	home := b.home()
	text := "10.99.0.23 " + string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
	if err := os.WriteFile(filepath.Join(home, ".mke", "known_hosts"), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return args("--hosts-path", b.HostsYAMLOf("h3"))(b)
}

// otherKubeconfig is the cluster's own, but for its CA.
func otherKubeconfig(b *bed) ([]string, func()) {
	ca, err := cert.NewCA("another cluster")
	if err != nil {
		b.t.Fatal(err)
	}
	cfg, err := clientcmd.LoadFromFile(b.Kubeconfig())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range cfg.Clusters {
		c.CertificateAuthorityData = ca.PEM()
	}
	path := filepath.Join(b.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*cfg, path); err != nil {
		b.t.Fatal(err)
	}
	return args("--kubeconfig", path, "--hosts-path", b.HostsYAMLOf("h3"))(b)
}

func helperDown(b *bed) ([]string, func()) {
	b.Host("c1").Exec("systemctl", "stop", "ssh")
	line, _ := args("--hosts-path", b.HostsYAMLOf("h3"))(b)
	return line, func() { b.Host("c1").Exec("systemctl", "start", "ssh") }
}

// missingArtifact has a MkeConfig with a registry's path where nothing lies.
func missingArtifact(b *bed) ([]string, func()) {
	set := func(url string) {
		b.changeConfig(func(o *unstructured.Unstructured) {
			if err := unstructured.SetNestedField(o.Object, url, "spec", "registries", "imageRegistry", "url"); err != nil {
				b.t.Fatal(err)
			}
		})
	}
	set("10.99.0.2:5000/nowhere")
	line, _ := args("--hosts-path", b.HostsYAMLOf("h3"))(b)
	return line, func() { set("10.99.0.2:5000/mke") }
}

// upgrading has the operator of MKE say that it is at work.
func upgrading(b *bed) ([]string, func()) {
	set := func(status, message string) {
		b.changeStatus(func(o *unstructured.Unstructured) {
			list, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
			if err != nil {
				b.t.Fatal(err)
			}
			for _, c := range list {
				if c := c.(map[string]any); c["type"] == "Upgrading" {
					c["status"], c["message"] = status, message
				}
			}
			if err := unstructured.SetNestedSlice(o.Object, list, "status", "conditions"); err != nil {
				b.t.Fatal(err)
			}
		})
	}
	set("True", "to 4.3.0")
	line, _ := args("--hosts-path", b.HostsYAMLOf("h3"))(b)
	return line, func() { set("False", "") }
}

// otherVersion has a k0s on a host of the cluster that somebody has replaced.
func otherVersion(b *bed) ([]string, func()) {
	h := b.Host("h1")
	// Under its own name, by which it is k0s.
	const aside = "/usr/local/bin/aside/k0s"
	h.Exec("mkdir", filepath.Dir(aside))
	h.Exec("mv", k0sPath, aside)
	h.WriteFile(k0sPath, []byte("#!/bin/sh\nif [ \"$1\" = version ]; then echo v1.35.4+k0s.0; exit; fi\nexec "+aside+" \"$@\"\n"), 0o755)
	line, _ := args("--hosts-path", b.HostsYAMLOf("h1", "h3"))(b)
	return line, func() { h.Exec("mv", aside, k0sPath); h.Exec("rmdir", filepath.Dir(aside)) }
}
