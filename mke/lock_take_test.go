package mke

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mkesdk/mkesdk/hosts"
)

// TestLockLostReplies loses each kind of reply once, and then every kind now and
// then: the lock is had, kept and given back all the same.
func TestLockLostReplies(t *testing.T) {
	for _, verb := range []string{"create", "update", "delete", "get", "list", "each"} {
		t.Run(verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &leaseClient{store: newLeaseStore()}
				seen := map[string]int{}
				c.fault = func(v, name string) fault {
					seen[v+name]++
					if (v == verb || verb == "each") && name != "" && seen[v+name] == 1 {
						return replyLost
					}
					return works
				}
				var n notes
				h := acquire(t, c, n.in(ofNodes("w1", "w2")))
				time.Sleep(5 * time.Minute)
				if err := h.Check(t.Context()); err != nil {
					t.Fatal(err)
				}
				release(t, h)
				if _, lost := n.all(); len(lost) != 0 || len(c.store.names()) != 0 {
					t.Errorf("lost %v, left %v", lost, c.store.names())
				}
				if c.store.created != 2 {
					t.Errorf("%d leases were created, want 2: one for each node, once", c.store.created)
				}
			})
		})
	}
}

// TestLockStoreAway fails to take a lock of a store that does not answer, or that
// refuses, and leaves nothing behind.
func TestLockStoreAway(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"forbidden":   {apierrors.NewForbidden(leaseResource, "mke-node-w2", errors.New("no")), "mke-node-w2"},
		"unavailable": {apierrors.NewServiceUnavailable("later"), "later"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &leaseClient{store: newLeaseStore()}
				_, err := AcquireLock(t.Context(), &failing{c, tt.err}, ofNodes("w1", "w2"))
				if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, ErrLocked) {
					t.Errorf("error %v", err)
				}
				if left := c.store.names(); len(left) != 0 {
					t.Errorf("left %v", left)
				}
			})
		})
	}
}

// failing fails to create the lease of one node.
type failing struct {
	*leaseClient
	err error
}

func (f *failing) Create(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if l.Name == "mke-node-w2" {
		return nil, f.err
	}
	return f.leaseClient.Create(ctx, l)
}

// die takes a lock, and dies: nothing renews it, nothing gives it back.
func die(t *testing.T, leases Leases, req LockRequest) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := AcquireLock(ctx, leases, req); err != nil {
		t.Fatal(err)
	}
}

func adopting(req LockRequest) LockRequest {
	req.Lease.AdoptStale = true
	return req
}

// TestLockStale meets the lock of a run that has died. It is refused as stale to all
// but the same operation that asks for it.
func TestLockStale(t *testing.T) {
	other := func(change func(*LockRequest)) LockRequest {
		req := adopting(ofNodes("w1"))
		change(&req)
		return req
	}
	for name, tt := range map[string]struct {
		req  LockRequest
		hint string
	}{
		"not asked for":   {ofNodes("w1"), "adopt"},
		"other operation": {other(func(r *LockRequest) { r.Operation = "node-remove" }), "kubectl -n mke delete lease mke-node-w1"},
		"other scope":     {other(func(r *LockRequest) { r.Scope = hosts.ControllerWorker }), "kubectl -n mke delete lease mke-node-w1"},
		"other hosts":     {other(func(r *LockRequest) { r.Hosts = []string{"w1", "w2"} }), "kubectl -n mke delete lease mke-node-w1"},
		"other kind":      {adopting(ofCluster()), "kubectl -n mke delete lease mke-node-w1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &leaseClient{store: newLeaseStore()}
				die(t, c, ofNodes("w1"))
				time.Sleep(2 * time.Minute)
				if locks, err := Locks(t.Context(), c); err != nil || len(locks) != 1 || !locks[0].Stale {
					t.Errorf("locks %+v, %v", locks, err)
				}
				locked := wantLocked(t, c, tt.req)
				if !locked.Lock.Stale || !strings.Contains(locked.Hint, tt.hint) {
					t.Errorf("%v, want it stale and hint %q", locked, tt.hint)
				}
			})
		})
	}
}

// TestLockAdopt takes over the lock of a run that has died, whatever the clocks say, and
// never that of a run that lives.
func TestLockAdopt(t *testing.T) {
	const wrong = 10 * time.Minute
	for name, tt := range map[string]struct {
		holder, adopter time.Duration // how far their clocks are off
		after           time.Duration // since the death
		adopted         bool
	}{
		"at once":                        {0, 0, 0, true},
		"later":                          {0, 0, time.Hour, true},
		"holder's clock behind, at once": {-wrong, 0, 0, true},
		"holder's clock ahead, at once":  {wrong, 0, 0, false},
		"holder's clock ahead, later":    {wrong, 0, 12 * time.Minute, true},
		"adopter's clock behind":         {0, -wrong, 0, false},
		"adopter's clock behind, later":  {0, -wrong, 12 * time.Minute, true},
		"adopter's clock ahead":          {0, wrong, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newLeaseStore()
				holder, adopter := &leaseClient{store: store, offset: tt.holder}, &leaseClient{store: store, offset: tt.adopter}

				live := acquire(t, holder, ofNodes("w1"))
				if locked := wantLocked(t, adopter, adopting(ofNodes("w1"))); locked.Lease != "mke-node-w1" {
					t.Errorf("refused by %v", locked)
				}
				if err := live.Check(t.Context()); err != nil {
					t.Errorf("the holder lives: %v", err)
				}
				release(t, live)

				die(t, holder, ofNodes("w1"))
				death := time.Now()
				time.Sleep(tt.after)
				if !tt.adopted {
					if locked := wantLocked(t, adopter, adopting(ofNodes("w1"))); locked.Lock.Stale || locked.Hint == "" {
						t.Errorf("%v, want it not stale yet, and a hint", locked)
					}
					return
				}
				h := acquire(t, adopter, adopting(ofNodes("w1")))
				if d := time.Since(death); d < time.Minute {
					t.Errorf("adopted %s after the death, while the dead run could have held it", d)
				}
				l, err := adopter.Get(t.Context(), "mke-node-w1")
				if err != nil || *l.Spec.LeaseTransitions != 1 {
					t.Errorf("lease %v, %v", l.Spec, err)
				}
				release(t, h)
			})
		})
	}
}

// TestLockAdoptAcross deletes a stale lock of the other kind that is of the same
// operation, scope and hosts: left alone its holder might wake up.
func TestLockAdoptAcross(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &leaseClient{store: newLeaseStore()}
		die(t, c, ofNodes("w1"))
		req := adopting(ofNodes("w1"))
		req.Nodes = nil
		h := acquire(t, c, req)
		if left := c.store.names(); !slices.Equal(left, []string{"mke-operation"}) {
			t.Errorf("there are %v", left)
		}
		release(t, h)
	})
}

// TestLockAdoptedOnce lets two runs adopt one stale lock: one of them gets it, and the
// loser leaves the winner's alone.
func TestLockAdoptedOnce(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			store := newLeaseStore()
			die(t, &leaseClient{store: store}, ofNodes("w1", "w2"))
			results := make(chan *Held, 2)
			for range 2 {
				go func() {
					h, err := AcquireLock(t.Context(), &leaseClient{store: store, latency: 20 * time.Millisecond}, adopting(ofNodes("w1", "w2")))
					if err != nil && !errors.Is(err, ErrLocked) {
						t.Error(err)
					}
					results <- h
				}()
			}
			var winners []*Held
			for range 2 {
				if h := <-results; h != nil {
					winners = append(winners, h)
				}
			}
			if len(winners) != 1 {
				t.Fatalf("%d runs adopted it, want 1", len(winners))
			}
			time.Sleep(3 * time.Minute)
			if err := winners[0].Check(t.Context()); err != nil {
				t.Error(err)
			}
			release(t, winners[0])
		})
	}
}

// TestLockGivenBackByOwner lets a holder come back whose lock has been adopted
// meanwhile: it loses it, and gives back nothing of the new holder's.
func TestLockGivenBackByOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newLeaseStore()
		sleeper := &leaseClient{store: store}
		var n notes
		old := acquire(t, sleeper, n.in(ofNodes("w1")))
		sleeper.freeze(10 * time.Minute)
		time.Sleep(3 * time.Minute)
		h := acquire(t, &leaseClient{store: store}, adopting(ofNodes("w1")))
		if err := old.Check(t.Context()); !errors.Is(err, ErrLockLost) || !strings.Contains(err.Error(), "me@here") {
			t.Errorf("the sleeper's Check gives %v, want ErrLockLost and by whom", err)
		}
		release(t, old)
		if err := h.Check(t.Context()); err != nil {
			t.Errorf("the new holder: %v", err)
		}
		release(t, h)
	})
}

// TestLockFromFirstRequest learns only from the second request that the first had taken
// effect. The lock counts from the first: for the others that is when it began.
func TestLockFromFirstRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &leaseClient{store: newLeaseStore()}
		creates, gets := 0, 0
		c.fault = func(verb, _ string) fault {
			switch verb {
			case "create":
				if creates++; creates == 1 {
					return replyLost
				}
			case "get":
				if gets++; gets == 1 {
					return refused
				}
			}
			return works
		}
		start := time.Now()
		h := acquire(t, c, ofNodes("w1"))
		if creates != 2 || time.Since(start) == 0 {
			t.Fatalf("%d requests in %s, want a second one later", creates, time.Since(start))
		}
		if h.valid(start.Add(time.Minute)) {
			t.Error("a minute after the first request the lock is still believed to be held")
		}
		release(t, h)
	})
}
