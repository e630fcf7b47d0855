package e2e

import (
	"slices"
	"strings"
	"syscall"
	"testing"
)

// testInterrupted ends mkectl before it is done, in the ways that there are. What is left is said,
// and the same command again comes through.
func testInterrupted(t *testing.T, b *bed) {
	for _, part := range []struct {
		name string
		run  func(*testing.T, *bed)
	}{
		{"by a first Ctrl-C", testFirstInterrupt},
		{"by a first Ctrl-C while nothing comes of it", testFirstInterruptStuck},
		{"by a second Ctrl-C", testSecondInterrupt},
		{"by kill -9", testKilled},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, b.part(t)) })
	}
}

// testFirstInterrupt ends an addition while a host is being installed: that is finished.
func testFirstInterrupt(t *testing.T, b *bed) {
	b.placeK0s("h11")
	w := b.world("c1")
	args := []string{"node", "add", "--hosts-path", b.HostsYAMLOf("h11")}
	p := b.begin(args...)
	p.await(p.out, "worker-bootstrap", "started")
	p.signal(syscall.SIGINT)
	r := p.wait()
	r.ended(t, 1)
	says(t, "the end", r.err, "stopping at the next safe point", "stopped as asked", "may be repeated as it is")
	if strings.Contains(r.err, "nothing was changed") {
		t.Errorf("something was:\n%s", r.err)
	}
	if now := b.leases(); len(now) > 0 {
		t.Errorf("locks are left: %v", now)
	}
	b.clean(w, "h11")
	b.hostsUnchanged(w)

	r = b.run(args...)
	r.ended(t, 0)
	b.joined(w, "h11")
}

// testFirstInterruptStuck ends an addition whose host does not come by its own kubeconfig. It still
// needs its token, and mkectl says so.
func testFirstInterruptStuck(t *testing.T, b *bed) {
	b.placeK0s("h12")
	h := b.Host("h12")
	h.WriteFile("/etc/sandbox/never-bootstrap", nil, 0o644)
	w := b.world("c1")
	args := []string{"node", "add", "--hosts-path", b.HostsYAMLOf("h12")}
	p := b.begin(args...)
	p.await(p.out, "worker-bootstrap", "waiting for", "kubelet.conf")
	p.signal(syscall.SIGINT)
	r := p.wait()
	r.ended(t, 1)
	says(t, "the end", r.err, "stopped as asked", "left behind", "10.99.0.32 (h12)", "/etc/k0s/k0stoken", "15m")
	if now := b.leases(); len(now) > 0 {
		t.Errorf("locks are left: %v", now)
	}
	if got := h.Exec("stat", "-c", "%a %U:%G", "/etc/k0s/k0stoken"); got != "600 root:root" {
		t.Errorf("the token that it still needs is %s", got)
	}

	// Whatever kept it has gone, and its service has come by its kubeconfig with that token.
	h.Exec("systemctl", "restart", "k0sworker")
	b.run(args...).ended(t, 0)
	b.joined(w, "h12")
}

// testSecondInterrupt ends an addition at once that hangs on a host that was cut off.
func testSecondInterrupt(t *testing.T, b *bed) {
	w := b.world("c1")
	args := []string{"node", "add", "--hosts-path", b.HostsYAMLOf("h9")}
	p := b.begin(args...)
	p.await(p.out, "k0s-binary", "started")
	b.Host("h9").Cut()
	healed := false
	defer func() {
		if !healed {
			b.Host("h9").Heal()
		}
	}()
	p.signal(syscall.SIGINT)
	p.await(p.err, "stopping at the next safe point", "Ctrl-C again ends at once")
	p.signal(syscall.SIGINT)
	r := p.wait()
	r.ended(t, 1)
	says(t, "the end", r.err, "ending at once", "interrupted")
	if now := b.leases(); len(now) > 0 {
		t.Errorf("locks are left: %v", now)
	}
	b.Host("h9").Heal()
	healed = true

	r = b.run(args...)
	r.ended(t, 0)
	b.joined(w, "h9")
}

// testKilled ends mkectl as it stands. Its lock keeps others out until it is stale, and is then
// adopted by who asks for that.
func testKilled(t *testing.T, b *bed) {
	b.placeK0s("h3")
	w := b.world("c1")
	args := []string{"node", "add", "--hosts-path", b.HostsYAMLOf("h3"), "--lease-ttl", "5s", "--lease-renew-interval", "1s"}
	p := b.begin(args...)
	p.await(p.out, "worker-bootstrap", "started")
	p.kill()

	r := b.run(args...)
	r.ended(t, 4)
	says(t, "the error", r.err, "mke-node-h3", "10.99.0.23", "pid ")
	says(t, "lock show", b.run("lock", "show").out, "mke-node-h3")

	r = b.run(append(args, "--lease-adopt-stale")...)
	for r.code == 4 { // the lock is not stale yet
		if t.Context().Err() != nil {
			t.Fatal("the lock has never become stale")
		}
		r = b.run(append(args, "--lease-adopt-stale")...)
	}
	r.ended(t, 0)
	for _, id := range b.tokens() { // nobody knows the id any more; it expires
		if !slices.Contains(w.tokens, id) {
			b.Host("c1").Exec(k0sPath, "token", "invalidate", strings.TrimPrefix(id, "bootstrap-token-"))
		}
	}
	b.joined(w, "h3")
	b.hostsUnchanged(w)
}
