package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/mke"
)

// testLock holds the operation lock against the real API server.
func testLock(t *testing.T, b *bed) {
	b.ensure("h1")
	t.Run("refused", func(t *testing.T) { testRefused(t, b.part(t)) })
	t.Run("asleep", func(t *testing.T) { testAsleep(t, b.part(t)) })
	t.Run("race", func(t *testing.T) { testRace(t, b.part(t)) })
}

// hold takes a lock, as another client does, until the test ends or give is called.
func (b *bed) hold(nodes ...string) (give func()) {
	b.t.Helper()
	leases := b.caller().cluster.Leases
	held, err := mke.AcquireLock(b.t.Context(), leases, mke.LockRequest{
		Operation: mke.Add, Scope: hosts.Worker, Nodes: nodes, Hosts: []string{"10.99.0.99"}, Client: "ops@elsewhere pid 7",
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return func() {
		if err := held.Release(context.WithoutCancel(b.t.Context())); err != nil {
			b.t.Error(err)
		}
	}
}

// testRefused has an operation meet either kind of lock, and then the lock of a node that is none of
// its business.
func testRefused(t *testing.T, b *bed) {
	for _, kind := range []struct {
		name, lease string
		nodes       []string
	}{
		{"by a cluster-wide lock", "mke-operation", nil},
		{"by a lock of its node", "mke-node-h1", []string{"h9", "h1"}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			b := b.part(t)
			give := b.hold(kind.nodes...)
			defer give()
			w := b.world("h1", "h3", "c1")
			c := b.caller()
			_, err := c.addNodes(mke.Options{Hosts: b.specs("h3", "h1")})
			locked, ok := errors.AsType[*mke.LockedError](err)
			if !ok || !errors.Is(err, mke.ErrLocked) || !mke.Retryable(err) {
				t.Fatalf("adding them: %v", err)
			}
			if l := locked.Lock; locked.Lease != kind.lease || l.Client != "ops@elsewhere pid 7" || l.Operation != string(mke.Add) ||
				!slices.Equal(l.Hosts, []string{"10.99.0.99"}) || l.Stale || time.Since(l.Started) > time.Minute || time.Until(l.Expires) > time.Minute {
				t.Errorf("%s is held by %+v", locked.Lease, l)
			}
			for _, part := range []string{kind.lease, "node-add", "10.99.0.99", "ops@elsewhere pid 7", "since ", "until "} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not say %q: %v", part, err)
				}
			}
			b.unchanged(w, c.agent)
		})
	}
	defer b.hold("h9", "h2")()
	b.caller().add("h1")
}

// testAsleep has a holder that cannot renew. Its lock is adopted by the same operation, once that
// was asked for, and never do both believe that they hold it.
func testAsleep(t *testing.T, b *bed) {
	real := b.caller().cluster.Leases
	g := &gate{Leases: real}
	lost := make(chan error, 1)
	req := mke.LockRequest{
		Operation: mke.Add, Scope: hosts.Worker, Nodes: []string{"sleeper"}, Hosts: []string{"10.99.0.99"},
		Lease: mke.Lease{TTL: 3 * time.Second, Renew: 500 * time.Millisecond}, Client: "the first",
	}
	first := req
	first.Lost = func(err error) { lost <- err }
	sleeper, err := mke.AcquireLock(t.Context(), g, first)
	if err != nil {
		t.Fatal(err)
	}
	g.cut(true)

	if _, err := mke.AcquireLock(t.Context(), real, req); !errors.Is(err, mke.ErrLocked) {
		t.Errorf("a lock that nobody asked to adopt: %v", err)
	}
	second := req
	second.Client, second.Lease.AdoptStale = "the second", true
	heir, err := mke.AcquireLock(t.Context(), real, second)
	// It may not have seen yet that the lock is stale: then it is refused, and asks again.
	for end := time.Now().Add(30 * time.Second); errors.Is(err, mke.ErrLocked) && time.Now().Before(end); {
		heir, err = mke.AcquireLock(t.Context(), real, second)
	}
	if err != nil {
		t.Fatalf("adopting a stale lock: %v", err)
	}
	defer func() {
		if err := heir.Release(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	if believes(t.Context(), sleeper) {
		t.Error("a holder that could not renew believes that it holds what another has adopted")
	}
	g.cut(false)
	select {
	case err := <-lost:
		if !errors.Is(err, mke.ErrLockLost) || !strings.Contains(err.Error(), "the second") {
			t.Errorf("lost by %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the first holder has not noticed that its lock is lost")
	}
	if err := sleeper.Release(t.Context()); err != nil {
		t.Errorf("giving back what is lost: %v", err)
	}
	if !believes(t.Context(), heir) {
		t.Error("the first holder has given back the lock of the second")
	}
}

// believes says whether a holder believes that it holds at this moment.
func believes(ctx context.Context, h *mke.Held) bool {
	ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	return h.Check(ctx) == nil
}

// An arena knows who is in it: the holders of locks, by their own belief.
type arena struct {
	mu      sync.Mutex
	inside  map[*mke.Held][]string // the nodes that it has locked; none means all
	entered map[string]int
	wrong   []string
}

// enter lets a holder in, and looks whether another is in who must not be.
func (a *arena) enter(ctx context.Context, h *mke.Held, kind string, nodes []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for other, theirs := range a.inside {
		if conflict(nodes, theirs) && believes(ctx, h) && believes(ctx, other) {
			a.wrong = append(a.wrong, fmt.Sprintf("%v and %v at once", h, other))
		}
	}
	a.inside[h] = nodes
	a.entered[kind]++
}

func (a *arena) leave(h *mke.Held) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.inside, h)
}

func conflict(a, b []string) bool {
	if len(a) == 0 || len(b) == 0 {
		return true
	}
	return slices.ContainsFunc(a, func(node string) bool { return slices.Contains(b, node) })
}

// testRace has racers of both kinds ask for locks that conflict, all at once and again and again.
func testRace(t *testing.T, b *bed) {
	const racers, rounds, limit = 20, 25, 30 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	leases := b.caller().cluster.Leases
	a := &arena{inside: map[*mke.Held][]string{}, entered: map[string]int{}}
	run := 0
	for ; run < rounds && ctx.Err() == nil; run++ {
		var wg sync.WaitGroup
		for i := range racers {
			wg.Go(func() {
				if err := a.race(ctx, leases, i); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	t.Logf("%d rounds of %d racers: %v", run, racers, a.entered)
	for _, w := range a.wrong {
		t.Error(w)
	}
	if a.entered["node"] == 0 || a.entered["cluster"] == 0 || run < 5 {
		t.Errorf("too little was raced to show anything: %d rounds, %v", run, a.entered)
	}
	if left := b.leases(); len(left) > 0 {
		t.Errorf("locks are left: %v", left)
	}
}

// race asks for one lock, and gives it back.
func (a *arena) race(ctx context.Context, leases mke.Leases, i int) error {
	kind, nodes := "node", []string(nil)
	if i%4 == 0 {
		kind = "cluster"
	} else {
		all := []string{"racer-a", "racer-b", "racer-c", "racer-d", "racer-e", "racer-f"}
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		nodes = all[:1+rand.IntN(2)]
	}
	held, err := mke.AcquireLock(ctx, leases, mke.LockRequest{Operation: mke.Add, Nodes: nodes, Client: fmt.Sprintf("racer %d", i)})
	switch {
	case errors.Is(err, mke.ErrLocked), err != nil && ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	a.enter(ctx, held, kind, nodes)
	select { // others are to meet it
	case <-time.After(20 * time.Millisecond):
	case <-ctx.Done():
	}
	a.leave(held)
	return held.Release(context.WithoutCancel(ctx))
}
