package hosts

import (
	"strings"
	"testing"

	"github.com/mkesdk/mkesdk/hosts/hoststest"
)

func target(t *testing.T, name, address string, change func(*hoststest.Machine)) Target {
	t.Helper()
	m := hoststest.Ubuntu(name, address)
	m.Gateway = "10.0.0.254"
	m.Addresses = append(m.Addresses, hoststest.Address{Interface: "docker0", Prefix: "172.17.0.1/16"})
	if change != nil {
		change(&m)
	}
	return Target{Host: name, Facts: factsOf(t, m)}
}

// TestIdentities: what has to be unique, over the targets and the cluster.
func TestIdentities(t *testing.T) {
	h1 := target(t, "h1", "10.0.0.1", nil)
	node := func(name, machineID, address string) Node {
		return Node{Name: name, MachineID: machineID, Addresses: []string{address}}
	}
	private := target(t, "h2", "10.0.0.2", func(m *hoststest.Machine) {
		m.Addresses = append(m.Addresses, hoststest.Address{Interface: "eth1", Prefix: "10.1.0.9/24"})
	})
	private.Spec.PrivateInterface = "eth1"
	for name, c := range map[string]struct {
		targets []Target
		cluster []Node
		want    []string // a part of each finding
	}{
		"different":                {[]Target{h1, target(t, "h2", "10.0.0.2", nil)}, []Node{node("c1", "cc", "10.0.0.11")}, nil},
		"container bridges":        {[]Target{h1, target(t, "h2", "10.0.0.2", nil)}, []Node{node("c1", "cc", "172.17.0.1")}, nil},
		"a clone":                  {[]Target{h1, target(t, "h2", "10.0.0.2", func(m *hoststest.Machine) { m.MachineID = h1.Facts.MachineID })}, nil, []string{"machine-id"}},
		"one host name, any case":  {[]Target{h1, target(t, "H1", "10.0.0.2", nil)}, nil, []string{"host name"}},
		"one host twice":           {[]Target{h1, h1}, nil, []string{"machine-id", "host name", "address"}},
		"one address":              {[]Target{h1, target(t, "h2", "10.0.0.1", nil)}, nil, []string{"address"}},
		"its own node":             {[]Target{h1}, []Node{node("h1", h1.Facts.MachineID, "10.0.0.1")}, nil},
		"its stale node":           {[]Target{h1}, []Node{node("h1", strings.Repeat("a", 32), "10.0.0.1")}, nil},
		"renamed":                  {[]Target{h1}, []Node{node("old", h1.Facts.MachineID, "10.0.0.9")}, []string{"node old"}},
		"a node's address":         {[]Target{h1}, []Node{node("c1", "cc", "10.0.0.1")}, []string{"node c1"}},
		"a node's private address": {[]Target{private}, []Node{node("c1", "cc", "10.1.0.9")}, []string{"node c1"}},
		"not known is not equal":   {[]Target{{Host: "a"}, {Host: "b"}}, []Node{{Name: "c"}}, nil},
	} {
		got := CheckIdentities(c.targets, c.cluster)
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %q", name, got, c.want)
			continue
		}
		for i, f := range got {
			if !strings.Contains(f.Want+f.Got, c.want[i]) || f.ID != CheckIdentity || f.Severity != Error || f.Host == "" {
				t.Errorf("%s: %+v, want %q", name, f, c.want[i])
			}
		}
	}
}

func TestPrivateAddress(t *testing.T) {
	f := factsOf(t, hoststest.Ubuntu("h1", "10.0.0.1"))
	f.Addresses = append(f.Addresses, parseAddresses(lines("3: eth1    inet6 fe80::1/64\n3: eth1    inet6 fd00::1/64\n3: eth1    inet 10.1.0.1/24\n3: eth1    inet 10.1.0.2/24\n4: eth2    inet6 fe80::2/64\n5: eth3    inet6 fd00::3/64"))...)
	for name, c := range map[string]struct {
		spec      Spec
		want, err string
	}{
		"none":            {Spec{}, "", ""},
		"its own":         {Spec{PrivateAddress: "10.1.0.1"}, "10.1.0.1", ""},
		"notation":        {Spec{PrivateAddress: "[FD00:0::1]"}, "fd00::1", ""},
		"another's":       {Spec{PrivateAddress: "10.1.0.3"}, "", "is no address of the host, which has 10.0.0.1 (eth0), fd00::1 (eth1), 10.1.0.1 (eth1)"},
		"a name":          {Spec{PrivateAddress: "h1"}, "", "no IP address"},
		"IPv4 first":      {Spec{PrivateInterface: "eth1"}, "10.1.0.1", ""},
		"IPv6 only":       {Spec{PrivateInterface: "eth3"}, "fd00::3", ""},
		"link-local only": {Spec{PrivateInterface: "eth2"}, "", "no address that others can reach"},
		"no such":         {Spec{PrivateInterface: "eth9"}, "", "privateInterface eth9"},
		"loopback":        {Spec{PrivateInterface: "lo"}, "", "no address that others can reach"},
		"both":            {Spec{PrivateAddress: "10.1.0.1", PrivateInterface: "eth1"}, "", "only one"},
	} {
		a, err := PrivateAddress(c.spec, f)
		got := ""
		if a.IsValid() {
			got = a.String()
		}
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v; want %q, %q", name, got, err, c.want, c.err)
		}
	}
	if _, err := PrivateAddress(Spec{PrivateInterface: "eth0"}, Facts{}); err == nil || !strings.Contains(err.Error(), "none that is known") {
		t.Errorf("%v", err)
	}
}
