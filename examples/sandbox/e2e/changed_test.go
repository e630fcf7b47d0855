package e2e

import (
	"errors"
	"strings"
	"testing"

	"github.com/mkesdk/mkesdk/mke"
)

// testChanged changes something between the checks and the lock: the operation sees it once it has
// the lock, and does nothing.
func testChanged(t *testing.T, b *bed) {
	b.ensure("h1")
	for _, change := range []struct {
		name       string
		hosts      []string
		make, mend func(*bed)
		says       []string
	}{
		{
			"a program appears on a host", []string{"h3", "h9"},
			func(b *bed) { b.placeK0s("h3") }, func(b *bed) { b.Host("h3").Exec("rm", k0sPath) },
			[]string{"10.99.0.23 (h3)", "was scenario 1", "is scenario 0"},
		},
		{
			"a host joins another cluster", []string{"h3", "h9"},
			func(b *bed) { b.Host("h9").WriteFile("/var/lib/k0s/kubelet.conf", []byte("nonsense"), 0o600) },
			func(b *bed) { b.Host("h9").Exec("rm", "-r", "/var/lib/k0s") },
			[]string{"10.99.0.29 (h9)", "was scenario 1", "is scenario 14"},
		},
		{
			"an administrator cordons a node", []string{"h1"},
			func(b *bed) { b.cordon("h1", true) }, func(b *bed) { b.cordon("h1", false) },
			[]string{"10.99.0.21 (h1)", "cordoned=false", "cordoned=true"},
		},
	} {
		t.Run(change.name, func(t *testing.T) {
			b := b.part(t)
			c := b.caller()
			var w world
			c.on(mke.OperationLock, mke.Started, func() {
				change.make(b)
				w = b.world(append(change.hosts, "c1")...)
			})
			_, err := c.addNodes(mke.Options{Hosts: b.specs(change.hosts...)})
			if w.layers == nil {
				t.Fatalf("the operation has not come as far as its lock: %v", err)
			}
			defer change.mend(b)
			changed, ok := errors.AsType[*mke.ChangedError](err)
			if !ok || !errors.Is(err, mke.ErrChanged) || !mke.Retryable(err) {
				t.Fatalf("adding them: %v", err)
			}
			for _, part := range change.says {
				if !strings.Contains(changed.Error(), part) {
					t.Errorf("the error does not say %q: %v", part, changed)
				}
			}
			b.unchangedButLock(w, c.agent)
			if commands := c.changing(); len(commands) > 0 {
				t.Errorf("commands that change something were run:\n\t%s", quoted(commands))
			}
		})
	}
}
