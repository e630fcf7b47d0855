package cluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/mkesdk/mkesdk/hosts"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/host"
)

func TestLayout(t *testing.T) {
	var names []string
	addresses := map[string]bool{}
	for _, p := range Layout(Config{Controllers: 1, Spare: MaxSpare, Bastion: true}) {
		names = append(names, p.Name+" "+p.Address)
		for _, a := range p.Place.Addresses {
			if addresses[a] {
				t.Errorf("%s stands twice", a)
			}
			addresses[a] = true
		}
	}
	for _, want := range []string{"c1 10.99.0.11", "h1 10.99.0.21", "h3 10.99.0.23", "h5 10.99.0.25", "bastion 10.99.0.5", "h4 10.98.0.24"} {
		if !slices.Contains(names, want) {
			t.Errorf("no %s in %v", want, names)
		}
	}
	if len(names) != MaxSpare+3 {
		t.Errorf("%d hosts: %v", len(names), names)
	}
}

// The SDK reads the hosts.yaml of a sandbox.
func TestHostsYAML(t *testing.T) {
	plans := Layout(Config{Spare: 3, Bastion: true})
	text, err := HostsYAML(Offered(plans), plans, "/state")
	if err != nil {
		t.Fatal(err)
	}
	specs, err := hosts.Load("hosts.yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var got []string
	for _, s := range specs {
		line := string(s.Role) + " " + s.SSH.Address + " " + s.SSH.KeyPath
		if s.SSH.Bastion != nil {
			line += " via " + s.SSH.Bastion.Address
		}
		got = append(got, line)
	}
	want := []string{
		"worker 10.99.0.21 /state/id_ed25519", "worker 10.99.0.22 /state/id_ed25519",
		"worker 10.98.0.24 /state/id_ed25519 via 10.99.0.5",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if _, err := HostsYAML(plans, nil, "/state"); err == nil {
		t.Error("a host behind a bastion that is not there is accepted")
	}
}

func TestValidateSaysEverything(t *testing.T) {
	err := Config{Controllers: 3, Spare: 99, SSH: "telnet", Shapes: map[string]host.Shape{"h9000": {}}}.Validate()
	for _, want := range []string{"state directory", "3 controllers", "99 spare", `"telnet"`, `"h9000"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: nothing about %s", err, want)
		}
	}
	if err := (Config{Dir: "/x", Spare: 2, Bastion: true, Shapes: map[string]host.Shape{"h4": {}}}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestStateDir(t *testing.T) {
	t.Setenv("MKESDK_SANDBOX_DIR", "")
	t.Setenv("XDG_STATE_HOME", "/s")
	if got, err := StateDir("a"); err != nil || got != "/s/mkesdk/sandbox/a" {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"", ".", "..", "a/b", "/"} {
		if got, err := StateDir(bad); err == nil {
			t.Errorf("name %q gives %q", bad, got)
		}
	}
	t.Setenv("MKESDK_SANDBOX_DIR", "/mine")
	if got, err := StateDir("a"); err != nil || got != "/mine" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestReaddress(t *testing.T) {
	const admin = `apiVersion: v1
kind: Config
clusters:
- name: local
  cluster: {server: "https://localhost:6443", certificate-authority-data: eA==}
`
	got, err := readdress([]byte(admin), "10.99.0.11")
	if err != nil || !strings.Contains(string(got), "https://10.99.0.11:6443") || !strings.Contains(string(got), "eA==") {
		t.Errorf("%s, %v", got, err)
	}
}
