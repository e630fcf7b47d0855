package e2e

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mkesdk/mkesdk/mke"
)

// testScenarios brings hosts into the rows of the scenario matrix and adds them. Each part bears
// the number of its row.
func testScenarios(t *testing.T, b *bed) {
	for _, row := range []struct {
		name string
		run  func(*testing.T, *bed)
	}{
		{"00-clean-host-with-binary", testRow0},
		{"01-clean-host", testRow1},
		{"02-part-of-this-cluster", testRow2},
		{"03-not-ready", testRow3},
		{"04-never-registered", testRow4},
		{"04-never-registered-without-kubeconfig", testRow4WithoutKubeconfig},
		{"09-re-imaged", testRow9},
		{"10-nothing-on-the-host-and-node-ready", testRow10},
		{"11-other-cluster", testRow11},
	} {
		t.Run(row.name, func(t *testing.T) { row.run(t, b.part(t)) })
	}
}

// in fails the test unless the host of that name was in that row.
func (b *bed) in(r mke.Result, name, row string) mke.HostResult {
	b.t.Helper()
	h := resultOf(b.t, r, b.specs(name)[0])
	if h.Scenario != row {
		b.t.Errorf("%s is in row %q (%s), want row %s", name, h.Scenario, h.Name, row)
	}
	return h
}

// joined fails the test unless a node of that name is Ready and listed, and nothing of the way there
// is left.
func (b *bed) joined(w world, name string) {
	b.t.Helper()
	if n := b.node(name); n == nil || !isReady(n) {
		b.t.Errorf("node %s: %+v", name, n)
	}
	if address := b.Host(name).Address(); !slices.Contains(b.listed(), address) {
		b.t.Errorf("the MkeConfig does not list %s", address)
	}
	b.clean(w, name)
	if now := b.leases(); len(now) > 0 {
		b.t.Errorf("locks are left: %v", now)
	}
}

func testRow0(t *testing.T, b *bed) {
	b.placeK0s("h5")
	w := b.world()
	c := b.caller()
	r := c.add("h5")
	if h := b.in(r, "h5", "0"); slices.Contains(h.Did, "k0s binary placed") {
		t.Errorf("the binary that was there already was placed again: %v", h.Did)
	}
	b.joined(w, "h5")
}

func testRow1(t *testing.T, b *bed) {
	w := b.world()
	c := b.caller()
	r := c.add("h6")
	if h := b.in(r, "h6", "1"); !slices.Contains(h.Did, "k0s binary placed") {
		t.Errorf("done: %v", h.Did)
	}
	if got := b.Host("h6").Exec("stat", "-c", "%a %U:%G", k0sPath); got != "755 root:root" {
		t.Errorf("%s is %s", k0sPath, got)
	}
	b.joined(w, "h6")
}

// testRow2 also has an administrator's cordon on the node, which is none of the operation's business.
func testRow2(t *testing.T, b *bed) {
	address := b.Host("h5").Address()
	b.changeConfig(func(o *unstructured.Unstructured) {
		list, _, _ := unstructured.NestedSlice(o.Object, "spec", "hosts")
		list = slices.DeleteFunc(list, func(entry any) bool {
			got, _, _ := unstructured.NestedString(entry.(map[string]any), "ssh", "address")
			return got == address
		})
		if err := unstructured.SetNestedSlice(o.Object, list, "spec", "hosts"); err != nil {
			t.Fatal(err)
		}
	})
	b.cordon("h5", true)
	defer b.cordon("h5", false)
	w := b.world("h5", "c1")
	c := b.caller()
	r := c.add("h5")
	if h := b.in(r, "h5", "2"); !slices.Equal(h.Did, []string{"registered in MkeConfig"}) {
		t.Errorf("done: %v", h.Did)
	}
	b.hostsUnchanged(w)
	b.joined(w, "h5")
	if !b.node("h5").Spec.Unschedulable {
		t.Error("the node that an administrator has cordoned was un-cordoned")
	}
	for _, x := range b.writes(w, c.agent) {
		if !x.lock() && x.Resource != "mkeconfigs" {
			t.Errorf("it wrote more than its lock and the MkeConfig: %s", x)
		}
	}
}

func testRow3(t *testing.T, b *bed) {
	h := b.Host("h5")
	h.WriteFile("/etc/sandbox/not-ready", nil, 0o644)
	defer h.Exec("rm", "-f", "/etc/sandbox/not-ready")
	b.waitNode("h5", "is not Ready", func(n *corev1.Node) bool { return !isReady(n) })
	w := b.world("c1")
	c := b.caller()
	c.onWaiting(mke.Verification, func() { h.Exec("rm", "/etc/sandbox/not-ready") })
	r := c.add("h5")
	if h := b.in(r, "h5", "3"); len(h.Did) > 0 {
		t.Errorf("done: %v", h.Did)
	}
	if commands := c.changing(); len(commands) > 0 {
		t.Errorf("commands that change something were run on a host that only had to be waited for:\n\t%s", quoted(commands))
	}
	b.joined(w, "h5")
	b.unchangedButLock(w, c.agent)
}

// neverRegistered makes a host that runs k0s and answers, and whose node never appeared: an
// addition that was stopped while it waited for it.
func (b *bed) neverRegistered(name string) {
	b.t.Helper()
	b.placeK0s(name)
	b.Host(name).WriteFile("/etc/sandbox/never-register", nil, 0o644)
	c := b.caller()
	stop := make(chan struct{})
	c.onWaiting(mke.Verification, func() { close(stop) })
	r, err := c.addNodes(mke.Options{Hosts: b.specs(name), Stop: stop})
	if !errors.Is(err, mke.ErrStopped) || !mke.Retryable(err) {
		b.t.Fatalf("an addition that was stopped: %v", err)
	}
	if h := b.in(r, name, "0"); !slices.Contains(h.Did, "installed") {
		b.t.Fatalf("done: %v", h.Did)
	}
	if n := b.node(name); n != nil {
		b.t.Fatal("its node is there")
	}
	if slices.Contains(b.listed(), b.Host(name).Address()) {
		b.t.Error("a host whose node never appeared is listed in the MkeConfig")
	}
	if now := b.leases(); len(now) > 0 {
		b.t.Errorf("locks are left: %v", now)
	}
}

func testRow4(t *testing.T, b *bed) {
	w := b.world()
	b.neverRegistered("h7")
	if text := b.Host("h7").Sh("ls /etc/k0s/k0stoken 2>/dev/null || echo none"); text != "none" {
		t.Errorf("a host that has its kubelet.conf has kept its join token: %s", text)
	}
	c := b.caller()
	r := c.add("h7")
	h := b.in(r, "h7", "4")
	if !slices.Equal(h.Did, []string{"service restarted", "registered in MkeConfig"}) {
		t.Errorf("done: %v", h.Did)
	}
	b.joined(w, "h7")
	for _, command := range c.changing() {
		if strings.Contains(command, "token") {
			t.Errorf("a token for a host that has its kubelet.conf: %s", command)
		}
	}
}

// testRow4WithoutKubeconfig has a host that runs and has lost its own kubeconfig, or never got it:
// what it has of the cluster is in a join token that is good no more.
func testRow4WithoutKubeconfig(t *testing.T, b *bed) {
	w := b.world()
	b.neverRegistered("h8")
	h := b.Host("h8")
	h.Exec("rm", "/var/lib/k0s/kubelet.conf")
	token := b.Host("c1").Exec(k0sPath, "token", "create", "--role", "worker")
	for _, id := range b.tokens() {
		if !slices.Contains(w.tokens, id) {
			b.Host("c1").Exec(k0sPath, "token", "invalidate", strings.TrimPrefix(id, "bootstrap-token-"))
		}
	}
	h.WriteFile("/etc/k0s/k0stoken", []byte(token+"\n"), 0o600)

	c := b.caller()
	r := c.add("h8")
	if h := b.in(r, "h8", "4"); !slices.Equal(h.Did, []string{"service restarted", "registered in MkeConfig"}) {
		t.Errorf("done: %v", h.Did)
	}
	h.Exec("test", "-s", "/var/lib/k0s/kubelet.conf")
	b.joined(w, "h8")
}
