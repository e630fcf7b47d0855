package hosts

import (
	"context"
	"errors"
	"net"
	"reflect"
	"strings"
	"testing"

	"github.com/mkesdk/mkesdk/hosts/hoststest"
	"github.com/mkesdk/mkesdk/transport"
)

// simConn is a connection to a machine that exists as a value.
type simConn struct{ hoststest.Machine }

func (c simConn) Run(_ context.Context, cmd transport.Command) error {
	if ok, err := c.Answer(cmd); !ok || err != nil {
		return errors.Join(err, errors.New("not the facts script"))
	}
	return nil
}
func (simConn) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.ErrUnsupported
}
func (simConn) Close() error   { return nil }
func (simConn) String() string { return "root@h1:22" }

func factsOf(t *testing.T, m hoststest.Machine) Facts {
	t.Helper()
	f, err := Collect(t.Context(), simConn{m}, CollectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestScenariosEndToEnd: machines, through what the script prints on them, to the
// row of the matrix that they are to fall under.
func TestScenariosEndToEnd(t *testing.T) {
	ca, foreign := testCA(t, "this"), testCA(t, "other")
	const server = "https://10.0.0.9:6443"
	conf := func(ca string) string { return hoststest.Kubeconfig([]byte(ca), server) }
	token := func(ca string) string {
		text, err := hoststest.Token([]byte(ca), server, "abcdef.0123456789abcdef")
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	const kubeconf, tokenFile, unit = "/var/lib/k0s/kubelet.conf", "/etc/k0s/k0stoken", "/etc/systemd/system/k0sworker.service"
	bare := hoststest.Ubuntu("h1", "10.0.0.1")
	binary := bare.WithK0s("v1.36.3+k0s.2")
	worker := func(state, role string) hoststest.Machine {
		m := binary.WithService("worker", state, "--data-dir=/var/lib/k0s", "--token-file=/etc/k0s/k0stoken")
		m.StatusRole = role
		return m
	}
	running := worker("active", "worker").WithFile(kubeconf, conf(ca))
	own := func(ready bool) *Node {
		return &Node{Name: "h1", Ready: ready, MachineID: bare.MachineID, BootID: bare.BootID, Addresses: []string{"10.0.0.1"}}
	}
	old := &Node{Name: "h1", Cordoned: true, MachineID: strings.Repeat("a", 32), Addresses: []string{"10.0.0.1"}}
	with := func(m hoststest.Machine, change func(*hoststest.Machine)) hoststest.Machine { change(&m); return m }
	for name, c := range map[string]struct {
		m    hoststest.Machine
		node *Node
		row  string
	}{
		"clean, binary":                        {binary, nil, "0"},
		"clean":                                {bare, nil, "1"},
		"half a binary":                        {with(binary, func(m *hoststest.Machine) { m.K0sVersion = "" }), nil, "1"},
		"token left by a reset, other cluster": {binary.WithFile(tokenFile, token(foreign)), nil, "0"},
		"token written, then interrupted":      {binary.WithFile(tokenFile, token(ca)), nil, "0"},
		"images put there beforehand":          {binary.WithFile("/var/lib/k0s/images/bundle.tar", "x"), nil, "0"},
		"CNI configuration of podman":          {binary.WithFile("/etc/cni/net.d/87-podman.conflist", "{}"), nil, "0"},
		"data directory is a mount":            {with(binary.WithFile("/var/lib/k0s/lost+found/", ""), func(m *hoststest.Machine) { m.Mounts = []string{"/var/lib/k0s"} }), nil, "0"},
		"reset after a stop that failed":       {with(binary, func(m *hoststest.Machine) { m.Services = map[string]string{"k0sworker.service": "failed"} }), nil, "0"},
		"ready":                                {running, own(true), "2"},
		"not ready":                            {running, own(false), "3"},
		"never registered":                     {running, nil, "4"},
		"never registered, still with a token": {worker("active", "worker").WithFile(tokenFile, token(ca)), nil, "4"},
		"starting":                             {worker("active", "").WithFile(tokenFile, token(ca)), nil, "4a"},
		"crashing":                             {with(running, func(m *hoststest.Machine) { *m = m.WithService("worker", "activating"); m.StatusRole = "" }), own(false), "4a"},
		"stopped":                              {worker("inactive", "").WithFile(kubeconf, conf(ca)), own(false), "5"},
		"failed, stale socket":                 {worker("failed", "").WithFile(kubeconf, conf(ca)).WithFile("/run/k0s/status.sock", ""), nil, "5"},
		"interrupted before the CA":            {worker("inactive", ""), nil, "6"},
		"data of this cluster":                 {binary.WithFile(kubeconf, conf(ca)), nil, "7"},
		"data of this cluster, registered":     {binary.WithFile(kubeconf, conf(ca)), own(false), "8"},
		"re-imaged":                            {bare, old, "9"},
		"re-imaged, same machine-id":           {bare, own(false), "9"},
		"re-imaged, interrupted again":         {worker("active", "worker").WithFile(tokenFile, token(ca)), old, "3"},
		"nothing, yet ready":                   {bare, own(true), "10"},
		"other cluster":                        {worker("active", "worker").WithFile(kubeconf, conf(foreign)), nil, "11"},
		"other cluster, data only":             {bare.WithFile("/var/lib/k0s/pki/ca.crt", foreign), nil, "11"},
		"other cluster, waiting for its CA":    {worker("active", "").WithFile(tokenFile, token(foreign)), nil, "11"},
		"controller":                           {with(binary.WithService("controller", "active").WithFile("/var/lib/k0s/pki/ca.crt", ca), func(m *hoststest.Machine) { m.StatusRole = "controller" }), own(true), "12"},
		"half reset":                           {binary.WithFile("/var/lib/k0s/pki/etcd/ca.crt", "x"), nil, "13"},
		"half reset, only a mount":             {with(binary, func(m *hoststest.Machine) { m.Mounts = []string{"/run/k0s/containerd/a"} }), nil, "13"},
		"unit without a binary":                {bare.WithService("worker", "failed").WithFile(kubeconf, conf(ca)), nil, "15"},
		"another machine":                      {bare, &Node{Name: "h1", MachineID: strings.Repeat("b", 32), Addresses: []string{"10.0.0.2"}}, "16"},
		"another machine, this one runs":       {running, &Node{Name: "h1", Ready: true, MachineID: strings.Repeat("b", 32), Addresses: []string{"10.0.0.1"}}, "16"},
		"a clone, or another address":          {running, &Node{Name: "h1", Ready: true, MachineID: bare.MachineID, Addresses: []string{"10.0.0.2"}}, "14"},
		"both services":                        {running.WithService("controller", "inactive"), nil, "14"},
		"a unit that says nothing":             {running.WithFile(unit, ""), own(true), "14"},
		"runs as something else":               {with(running, func(m *hoststest.Machine) { m.StatusRole = "controller" }), own(true), "14"},
		"runs without a service":               {with(binary, func(m *hoststest.Machine) { m.StatusRole = "worker" }), nil, "14"},
		"stopping":                             {running.WithService("worker", "deactivating"), own(true), "14"},
		"another init system":                  {with(running.WithFile("/etc/init.d/k0sworker", "x"), func(m *hoststest.Machine) { m.Init = "sshd" }), own(true), "14"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Observe(factsOf(t, c.m), ClusterView{CAFingerprint: print(t, ca), Node: c.node})
			if got := Match(Add, Worker, s); got.Row != c.row {
				t.Errorf("row %s, want %s: %s\n%+v", got.Row, c.row, got.Refusal, s)
			}
		})
	}
}

// TestObserveUnknown: what could not be looked up is unknown, and said.
func TestObserveUnknown(t *testing.T) {
	f := factsOf(t, hoststest.Ubuntu("h1", "10.0.0.1"))
	s := Observe(f, ClusterView{CAFingerprint: "x", NodeErr: errors.New("the API is away")})
	if s.Node != (NodeState{}) || Match(Add, Worker, s).Row != "14" || !strings.Contains(strings.Join(s.Why, "; "), "the API is away") {
		t.Errorf("%+v", s)
	}
	s = Observe(f, ClusterView{})
	if s.CA != NoCluster {
		t.Errorf("a host without a CA belongs to %s", s.CA)
	}
	f.CA = CA{Found: Yes, Fingerprint: "y", Source: "/f"}
	if s = Observe(f, ClusterView{}); s.CA != UnknownCluster {
		t.Errorf("the cluster's CA is not known, and the host's is %s", s.CA)
	}
	s = Observe(Facts{}, ClusterView{CAFingerprint: "x"})
	if got := Match(Add, Worker, s); got.Row != "14" || len(s.Why) < 4 {
		t.Errorf("of no facts: row %s, %q", got.Row, s.Why)
	}
	want := State{Node: NodeState{No, No, No, No}}
	s.Why = nil
	if !reflect.DeepEqual(s, want) {
		t.Errorf("of no facts: %+v", s)
	}
}

// TestObserveOtherCA: a second CA that is another cluster's is never overlooked.
func TestObserveOtherCA(t *testing.T) {
	for _, ca := range []CA{
		{Found: Yes, Fingerprint: "b"}, {Found: Unknown, Fingerprint: "a", Others: []string{"b"}}, {Found: Unknown, Fingerprint: "b", Why: "one is unreadable"},
	} {
		if s := Observe(Facts{CA: ca}, ClusterView{CAFingerprint: "a"}); s.CA != OtherCluster {
			t.Errorf("%+v: %s", ca, s.CA)
		}
	}
	if s := Observe(Facts{CA: CA{Found: Unknown, Fingerprint: "a"}}, ClusterView{CAFingerprint: "a"}); s.CA != UnknownCluster {
		t.Errorf("one of this cluster and one unreadable: %s", s.CA)
	}
}

func TestLeftoversFound(t *testing.T) {
	f := factsOf(t, hoststest.Ubuntu("h1", "10.0.0.1").WithFile("/etc/cni/net.d/a.conf", "x"))
	if f.Leftovers.CNI != Yes || f.Leftovers.Any() != No || f.Leftovers.Found() != nil {
		t.Errorf("%+v", f.Leftovers)
	}
	m := hoststest.Ubuntu("h1", "10.0.0.1").WithFile("/var/lib/k0s/etcd/member/x", "")
	m.Mounts = []string{"/var/lib/k0s/kubelet/pods/a"}
	want := []string{"/var/lib/k0s/etcd", "/var/lib/k0s/etcd/member", "/var/lib/k0s/kubelet/pods/a (mounted)"}
	if got := factsOf(t, m).Leftovers.Found(); !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if (Leftovers{DataDir: No}).Any() != Unknown {
		t.Error("what was not looked at is taken for clean")
	}
}
