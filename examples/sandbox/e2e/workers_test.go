package e2e

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mkesdk/mkesdk/mke"
)

// testWorkers adds three workers at once, one of them behind the bastion, and then the same again.
func testWorkers(t *testing.T, b *bed) {
	names := []string{"h1", "h2", "h4"}
	specs := b.specs(names...)
	before := b.world("c1")

	first := b.caller()
	r := first.add(names...)
	for _, s := range specs {
		h := resultOf(t, r, s)
		if h.Scenario != "1" || !slices.Contains(h.Did, "installed") || !slices.Contains(h.Did, "registered in MkeConfig") {
			t.Errorf("%s: %+v", s.SSH.Address, h)
		}
	}
	if r.Helper.Address != "10.99.0.11" || r.Helper.Node != "c1" || len(r.Left) > 0 {
		t.Errorf("helper %v, left %v", r.Helper, r.Left)
	}
	b.ready("c1", "h1", "h2", "h4")
	if got := b.listed(); !slices.Equal(got, []string{"10.99.0.11", "10.99.0.21", "10.99.0.22", "10.98.0.24"}) {
		t.Errorf("MkeConfig lists %v", got)
	}
	b.clean(before, names...)
	if left := b.leases(); len(left) > 0 {
		t.Errorf("locks are left: %v", left)
	}
	b.hostsUnchanged(before) // the helper is not installed on

	// What it did to the cluster, and nothing else: a lock for each node, a token for each host,
	// the MkeConfig once.
	count := map[string]int{}
	for _, w := range b.writes(before, first.agent) {
		count[w.Verb+" "+w.Resource]++
	}
	want := map[string]int{"create leases": 3, "delete leases": 3, "update mkeconfigs": 1, "create secrets": 3, "delete secrets": 3}
	for what, n := range count {
		if what != "update leases" && n != want[what] {
			t.Errorf("%d times %s, want %d", n, what, want[what])
		}
	}
	if n := count["create secrets"]; n != 3 {
		t.Errorf("%d join tokens were made, want one for each host", n)
	}

	t.Run("again", func(t *testing.T) { testAgain(t, b.part(t), names) })
}

// testAgain adds what has been added: the readiness is verified, the MkeConfig is looked at, and
// nothing is changed.
func testAgain(t *testing.T, b *bed, names []string) {
	before := b.world(b.Hosts()...)
	again := b.caller()
	r := again.add(names...)
	for _, h := range r.Hosts {
		if h.Scenario != "2" || len(h.Did) > 0 {
			t.Errorf("%s: %+v", h.Host, h)
		}
	}
	if got, want := again.ran(), []mke.Stage{mke.Verification, mke.MkeConfigPatch}; !slices.Equal(got, want) {
		t.Errorf("the stages that acted are %v, want %v", got, want)
	}
	b.unchangedButLock(before, again.agent)
	if commands := again.changing(); len(commands) > 0 {
		t.Errorf("commands that change something were run:\n\t%s", quoted(commands))
	}
	// Nothing was run that the SDK does not tell of.
	for _, name := range append(names, "c1") {
		h := b.Host(name)
		if n, told := len(h.Commands())-before.told[name], again.told(h.Address()); n != told || n == 0 {
			t.Errorf("%s was told %d commands, the SDK tells of %d", name, n, told)
		}
	}
}

// ready fails the test unless the nodes are exactly these, and Ready.
func (b *bed) ready(names ...string) {
	b.t.Helper()
	list, err := b.kube.CoreV1().Nodes().List(b.t.Context(), metav1.ListOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	got := map[string]bool{}
	for _, n := range list.Items {
		got[n.Name] = isReady(&n)
		if !slices.Contains(names, n.Name) {
			b.t.Errorf("node %s is there", n.Name)
		}
	}
	for _, name := range names {
		if ready, there := got[name]; !ready {
			b.t.Errorf("node %s: there %t, Ready %t", name, there, ready)
		}
	}
}

// clean fails the test if a join token, or anything that was only for the way, is left on a host or
// in the cluster since the world was looked at.
func (b *bed) clean(w world, names ...string) {
	b.t.Helper()
	for _, name := range names {
		left := b.Host(name).Sh(`ls -d /etc/k0s/*oken* /etc/k0s/.*oken* /usr/local/bin/.[!.]* /etc/k0s/.[!.]* 2>/dev/null || true`)
		if left != "" {
			b.t.Errorf("left on %s: %s", name, left)
		}
	}
	b.noToken(w)
}
