package mke

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mkesdk/mkesdk/hosts"
)

// ofNodes is a request for the locks of nodes, ofCluster one for the cluster-wide lock.
func ofNodes(nodes ...string) LockRequest {
	return LockRequest{Operation: Add, Scope: hosts.Worker, Nodes: nodes, Hosts: nodes, Client: "me@here pid 1"}
}

func ofCluster() LockRequest {
	return LockRequest{Operation: Add, Scope: hosts.ControllerWorker, Hosts: []string{"10.0.0.9"}, Client: "me@here pid 2"}
}

// acquire takes a lock that the test wants to have.
func acquire(t *testing.T, leases Leases, req LockRequest) *Held {
	t.Helper()
	h, err := AcquireLock(t.Context(), leases, req)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func release(t *testing.T, h *Held) {
	t.Helper()
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// wantLocked wants a lock to be refused, and returns what keeps it.
func wantLocked(t *testing.T, leases Leases, req LockRequest) *LockedError {
	t.Helper()
	h, err := AcquireLock(t.Context(), leases, req)
	if err == nil {
		t.Errorf("got the lock of %v, want it refused", req.Nodes)
		release(t, h)
		return &LockedError{}
	}
	locked, ok := errors.AsType[*LockedError](err)
	if !ok || !errors.Is(err, ErrLocked) {
		t.Fatalf("error %v, want a *LockedError", err)
	}
	return locked
}

// TestLockLease takes a lock of each kind and reads what it left in the cluster.
func TestLockLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &leaseClient{store: newLeaseStore()}
		h := acquire(t, c, ofNodes("w2", "w1", "w2"))
		for _, name := range []string{"mke-node-w1", "mke-node-w2"} {
			l, err := c.Get(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{
				"mke.mirantis.com/operation": "node-add", "mke.mirantis.com/state": "adding", "mke.mirantis.com/scope": "worker",
				"mke.mirantis.com/hosts": "w2,w1,w2", "mke.mirantis.com/client": "me@here pid 1", "mke.mirantis.com/started": time.Now().UTC().Format(time.RFC3339),
			}
			for k, v := range want {
				if l.Annotations[k] != v {
					t.Errorf("%s: annotation %s is %q, want %q", name, k, l.Annotations[k], v)
				}
			}
			if l.Labels["mke.mirantis.com/lock"] != "node" || *l.Spec.LeaseDurationSeconds != 60 || len(*l.Spec.HolderIdentity) < 20 {
				t.Errorf("%s: %v %v, want the label, a minute and a random token", name, l.Labels, l.Spec)
			}
		}
		locks, err := Locks(t.Context(), c)
		if err != nil || len(locks) != 2 || locks[0].Lease != "mke-node-w1" || locks[0].Stale || locks[0].Expires.Sub(locks[0].Renewed) != time.Minute {
			t.Errorf("locks %+v, %v", locks, err)
		}
		release(t, h)
		release(t, h) // does nothing
		if left := c.store.names(); len(left) != 0 {
			t.Errorf("left %v", left)
		}
		if err := h.Check(t.Context()); !errors.Is(err, ErrLockLost) {
			t.Errorf("after the release Check gives %v", err)
		}
		h = acquire(t, c, ofCluster())
		if left := c.store.names(); !slices.Equal(left, []string{"mke-operation"}) {
			t.Errorf("the cluster-wide lock is %v", left)
		}
		release(t, h)
	})
}

// TestLockExcludes tries every pair of kinds that may and may not be held together.
func TestLockExcludes(t *testing.T) {
	for _, tt := range []struct {
		name          string
		first, second LockRequest
		by            string // the lease that refuses the second; "" if both are held
	}{
		{"cluster cluster", ofCluster(), ofCluster(), "mke-operation"},
		{"cluster node", ofCluster(), ofNodes("w1"), "mke-operation"},
		{"node cluster", ofNodes("w1"), ofCluster(), "mke-node-w1"},
		{"same node", ofNodes("w1"), ofNodes("w1"), "mke-node-w1"},
		{"one in common", ofNodes("w1", "w2"), ofNodes("w0", "w2", "w3"), "mke-node-w2"},
		{"other nodes", ofNodes("w1"), ofNodes("w2"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &leaseClient{store: newLeaseStore(), latency: 10 * time.Millisecond}
				first := acquire(t, c, tt.first)
				before := len(c.store.names())
				if tt.by == "" {
					second := acquire(t, c, tt.second)
					release(t, second)
				} else {
					start := time.Now()
					locked := wantLocked(t, c, tt.second)
					if locked.Lease != tt.by || locked.Lock.Client != tt.first.Client || locked.Lock.Stale || locked.Hint != "" {
						t.Errorf("refused by %+v, want %s of %s", locked, tt.by, tt.first.Client)
					}
					if d := time.Since(start); d > time.Second {
						t.Errorf("it took %s to see that a lock is held", d)
					}
				}
				if now := c.store.names(); len(now) != before {
					t.Errorf("left %v", now)
				}
				release(t, first)
				release(t, acquire(t, c, tt.second))
			})
		})
	}
}

// TestLockRequest refuses what cannot be meant, all of it at once and before anything
// is asked.
func TestLockRequest(t *testing.T) {
	c := &leaseClient{store: newLeaseStore()}
	_, err := AcquireLock(t.Context(), c, LockRequest{Nodes: []string{"", "Upper", strings.Repeat("n", 250)}, Lease: Lease{TTL: time.Second, Renew: time.Second}})
	if !errors.Is(err, ErrInvalid) {
		t.Fatalf("error %v, want ErrInvalid", err)
	}
	for _, want := range []string{"Operation is empty", "shorter than", "without a name", `"Upper"`, "nnn"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if len(c.sent) != 0 {
		t.Errorf("sent %v", c.sent)
	}
}

// notes collects what a lock tells.
type notes struct {
	mu   sync.Mutex
	said []string
	lost []error
}

func (n *notes) in(req LockRequest) LockRequest {
	req.Notify = func(s string) { n.mu.Lock(); defer n.mu.Unlock(); n.said = append(n.said, s) }
	req.Lost = func(err error) { n.mu.Lock(); defer n.mu.Unlock(); n.lost = append(n.lost, err) }
	return req
}

func (n *notes) all() (said string, lost []error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.said, "\n"), slices.Clone(n.lost)
}

// TestLockOutlivesOutage takes the store away for five minutes: the lock is suspended
// meanwhile and goes on afterwards.
func TestLockOutlivesOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &leaseClient{store: newLeaseStore(), latency: 10 * time.Millisecond}
		var n notes
		h := acquire(t, c, n.in(ofNodes("w1", "w2")))
		time.Sleep(10 * time.Minute)
		if err := h.Check(t.Context()); err != nil {
			t.Fatalf("after ten minutes of renewals: %v", err)
		}
		c.freeze(5 * time.Minute)
		time.Sleep(30 * time.Second)
		if err := h.Check(t.Context()); err != nil {
			t.Fatalf("half a minute into the outage: %v", err)
		}
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := h.Check(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Check in the outage: %v, want it to wait", err)
		}
		start := time.Now()
		if err := h.Check(t.Context()); err != nil || time.Since(start) < 2*time.Minute {
			t.Fatalf("Check returned %v after %s, want nil when the store is back", err, time.Since(start))
		}
		said, lost := n.all()
		if len(lost) != 0 || strings.Count(said, "suspended") != 1 || strings.Count(said, "going on") != 1 {
			t.Errorf("lost %v, said:\n%s", lost, said)
		}
		release(t, h)
	})
}

// TestLockLost takes the lock away from its holder while it cannot renew it.
func TestLockLost(t *testing.T) {
	for name, take := range map[string]func(*leaseStore){
		"deleted": func(s *leaseStore) { delete(s.leases, "mke-node-w1") },
		"taken": func(s *leaseStore) {
			other := "other"
			s.leases["mke-node-w1"].Spec.HolderIdentity = &other
			s.put(s.leases["mke-node-w1"])
		},
		"created anew": func(s *leaseStore) {
			l := s.leases["mke-node-w1"]
			delete(s.leases, "mke-node-w1")
			other := "other"
			l.Spec.HolderIdentity = &other
			_, _ = s.create(l)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &leaseClient{store: newLeaseStore()}
				var n notes
				h := acquire(t, c, n.in(ofNodes("w0", "w1", "w2")))
				c.freeze(2 * time.Minute)
				time.Sleep(90 * time.Second)
				c.store.mu.Lock()
				take(c.store)
				c.store.mu.Unlock()
				if err := h.Check(t.Context()); !errors.Is(err, ErrLockLost) {
					t.Fatalf("Check gives %v, want ErrLockLost", err)
				}
				synctest.Wait()
				if _, lost := n.all(); len(lost) != 1 || !errors.Is(lost[0], ErrLockLost) {
					t.Errorf("Lost was told %v", lost)
				}
				release(t, h)
				want := 1
				if name == "deleted" {
					want = 0 // and never created again
				}
				if left := c.store.names(); len(left) != want {
					t.Errorf("left %v, want the lease of the other and nothing of ours", left)
				}
			})
		})
	}
}
