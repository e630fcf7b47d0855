package mke

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A watcher knows every lock that was ever granted, and looks whether two that exclude
// each other are believed to be held at one time.
type watcher struct {
	t      *testing.T
	mu     sync.Mutex
	held   []*Held
	grants int
}

func (w *watcher) add(h *Held) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.grants++
	w.held = append(w.held, h)
	w.look()
}

func (w *watcher) remove(h *Held) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = slices.DeleteFunc(w.held, func(o *Held) bool { return o == h })
}

func (w *watcher) look() {
	now := time.Now()
	var holders []*Held
	for _, h := range w.held {
		h.mu.Lock()
		if h.lost == nil && !h.released && h.validLocked(now) { // what Check goes by
			holders = append(holders, h)
		}
		h.mu.Unlock()
	}
	for i, a := range holders {
		for _, b := range holders[i+1:] {
			if slices.ContainsFunc(b.req.names(), a.req.concerns) {
				w.t.Errorf("at %s both %s and %s are believed to be held", now.Format("15:04:05.000"), a, b)
			}
		}
	}
}

// watch looks every few milliseconds, at odd times.
func (w *watcher) watch(ctx context.Context) {
	for sleep(ctx, 7*time.Millisecond+rand.N(9*time.Millisecond)) == nil {
		w.mu.Lock()
		w.look()
		w.mu.Unlock()
	}
}

// TestLockRace runs many operations of both kinds against each other, over a store that
// loses replies, answers late and goes away, from machines whose clocks are wrong. Some
// die with the lock in hand. At no instant do two that exclude each other hold it, and
// time and again somebody gets it.
func TestLockRace(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, 1))
				var rndMu sync.Mutex
				chance := func(percent int) bool {
					rndMu.Lock()
					defer rndMu.Unlock()
					return rnd.IntN(100) < percent
				}
				ctx, stop := context.WithCancel(t.Context())
				store, w := newLeaseStore(), &watcher{t: t}
				var wg sync.WaitGroup
				wg.Go(func() { w.watch(ctx) })
				var racers sync.WaitGroup
				for i := range 10 {
					c := &leaseClient{store: store, latency: 30 * time.Millisecond, offset: time.Duration(i%3-1) * 10 * time.Minute}
					c.fault = func(verb, _ string) fault {
						switch {
						case seed%3 == 0:
							return works
						case chance(3):
							return replyLost
						case chance(2):
							return refused
						case chance(1):
							return late
						}
						return works
					}
					req := ofCluster()
					if i%3 != 0 {
						req = ofNodes("w1", fmt.Sprintf("w%d", 2+i%2))
					}
					req.Lease = Lease{TTL: 6 * time.Second, Renew: 2 * time.Second, AdoptStale: i%2 == 0}
					racers.Go(func() {
						for range 60 {
							race(ctx, c, req, w, chance)
						}
					})
				}
				wg.Go(func() { tidy(ctx, store) })
				racers.Wait()
				stop()
				wg.Wait()
				time.Sleep(2 * time.Minute) // what is late still arrives
				if w.grants < 5 {
					t.Errorf("the lock was had %d times in all", w.grants)
				}
			})
		})
	}
}

// tidy plays the person who deletes, as lock show says, what dead runs have left.
func tidy(ctx context.Context, store *leaseStore) {
	c := &leaseClient{store: store}
	seen := map[string]time.Time{}
	for sleep(ctx, time.Second) == nil {
		all, err := c.List(ctx)
		for _, l := range all {
			key := l.Name + " " + l.ResourceVersion
			if seen[key].IsZero() {
				seen[key] = time.Now()
			}
			if time.Since(seen[key]) > 15*time.Second {
				err = c.Delete(ctx, l.Name, string(l.UID), l.ResourceVersion)
			}
		}
		_ = err // it is looked again
	}
}

// race tries once to have the lock, and to work under it for a while.
func race(ctx context.Context, c *leaseClient, req LockRequest, w *watcher, chance func(int) bool) {
	life, die := context.WithCancel(ctx)
	defer die()
	h, err := AcquireLock(life, c, req)
	if err != nil {
		if errors.Is(err, ErrInvalid) || errors.Is(err, ErrLockLost) {
			w.t.Error(err)
		}
		_ = sleep(ctx, rand.N(4*time.Second))
		return
	}
	w.add(h)
	if chance(20) {
		c.freeze(rand.N(20 * time.Second))
	}
	for range 1 + rand.IntN(4) {
		_ = sleep(ctx, rand.N(5*time.Second))
		if err := h.Check(life); err != nil && !errors.Is(err, ErrLockLost) {
			w.t.Error(err)
		}
	}
	if chance(10) {
		die() // it stays in the watcher's books: a dead holder is one until its time is up
		_ = sleep(ctx, rand.N(10*time.Second))
		return
	}
	_ = h.Release(ctx)
	w.remove(h)
}

// TestLockRaceOfTwo lets the two kinds ask at the very same moment. Both may be refused
// for a moment; in the end one of them has it.
func TestLockRaceOfTwo(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			store, w := newLeaseStore(), &watcher{t: t}
			var wg sync.WaitGroup
			for _, req := range []LockRequest{ofCluster(), ofNodes("w1")} {
				wg.Go(func() {
					h, err := AcquireLock(t.Context(), &leaseClient{store: store, latency: 20 * time.Millisecond}, req)
					if err == nil {
						w.add(h)
					} else if !errors.Is(err, ErrLocked) {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if w.grants != 1 {
				t.Errorf("%d of two have the lock, want 1", w.grants)
			}
			for _, h := range w.held {
				release(t, h)
			}
		})
	}
}
