package e2e

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mkesdk/mkesdk/examples/sandbox/sandboxtest"
	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/mke"
)

// testEntry adds a host whose entry says all that an entry can: a user who needs sudo, labels, and
// the address towards the cluster.
func testEntry(t *testing.T, b *bed) {
	const name, label, owned = "h15", "example.com/rack", "mke.mirantis.com/managed-labels"
	h := b.Host(name)
	b.placeK0s(name)
	spec := b.specs(name)[0]
	spec.SSH.User = b.sudoer(h)
	spec.InstallFlags = []string{"--labels=" + label + "=r7"}
	spec.PrivateInterface = "eth0"
	w := b.world()
	c := b.caller()
	r, err := c.addNodes(mke.Options{Hosts: []hosts.Spec{spec}})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.in(r, name, "0"); !slices.Contains(got.Did, "labelled") {
		t.Errorf("done: %v", got.Did)
	}
	b.joined(w, name)
	n := b.node(name)
	if n.Labels[label] != "r7" || n.Annotations[owned] != label {
		t.Errorf("labels %v, annotations %v", n.Labels, n.Annotations)
	}
	if !slices.Contains(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: h.Address()}) {
		t.Errorf("addresses: %v", n.Status.Addresses)
	}
	if unit := h.Exec("cat", "/etc/systemd/system/k0sworker.service"); !strings.Contains(unit, "--node-ip="+h.Address()) {
		t.Errorf("the service is not told the address:\n%s", unit)
	}
	for _, command := range h.Commands() {
		if command.User != spec.SSH.User {
			t.Errorf("%s was told %s", command.User, command.Line)
		}
	}

	// The MkeConfig lists the host as its entry has it: adding it again writes nothing.
	w = b.world(name)
	again := b.caller()
	r, err = again.addNodes(mke.Options{Hosts: []hosts.Spec{spec}})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.in(r, name, "2"); len(got.Did) > 0 {
		t.Errorf("done again: %v", got.Did)
	}
	b.unchangedButLock(w, again.agent)
}

// sudoer is a user of the host who needs sudo; root, where there can be none.
func (b *bed) sudoer(h *sandboxtest.Host) string {
	b.t.Helper()
	st, err := b.Client().Status(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	if st.SSH == sandboxtest.Builtin {
		b.t.Log("the built-in SSH server lets nobody in but root: nothing is run through sudo")
		return "root"
	}
	if _, err := h.Run("/bin/sh", "-c", "command -v sudo"); err != nil {
		b.t.Log("the hosts have no sudo, as this machine has none: nothing is run through it")
		return "root"
	}
	return "admin"
}
