package mke

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Held is a lock that is held, or was. It is valid until the time at which its last
// successful renewal was sent plus its TTL, by the clocks of this machine. After that
// it is suspended: nobody else can have it, but nothing may begin that it is there to
// keep apart, until the store of the lock answers again.
type Held struct {
	leases Leases
	req    LockRequest
	token  string

	stop context.CancelFunc
	done chan struct{} // closed when the renewals have ended
	kick chan struct{} // asks for a renewal now

	mu       sync.Mutex
	parts    map[string]part
	lost     error
	released bool
	changed  chan struct{} // closed, and made anew, when any of these change
}

// A part is one lease of the lock.
type part struct {
	lease *coordinationv1.Lease // as last seen; nil while it is being taken
	sent  time.Time             // when its last successful renewal was sent
}

func newHeld(a *acquisition) *Held {
	return &Held{
		leases: a.leases, req: a.req, token: a.token,
		kick: make(chan struct{}, 1), changed: make(chan struct{}),
		parts: map[string]part{},
	}
}

// Check returns nil if the lock is held at this moment. While it is suspended Check
// waits: until it has been renewed, or is lost (the error then matches ErrLockLost),
// or ctx is done. It returns an error too after Release, and once the context of
// AcquireLock is done.
func (h *Held) Check(ctx context.Context) error {
	for {
		h.mu.Lock()
		lost, released, changed := h.lost, h.released, h.changed
		ok := h.validLocked(time.Now())
		h.mu.Unlock()
		switch {
		case lost != nil:
			return lost
		case released:
			return fmt.Errorf("%w: it was given back", ErrLockLost)
		case ok:
			return nil
		}
		select { // not to wait for the next one: a machine that woke up is late for it
		case h.kick <- struct{}{}:
		default:
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the operation lock to be renewed: %w", context.Cause(ctx))
		case <-h.done:
			if h.isLost() == nil {
				return errors.New("the operation lock is not renewed any more: its context has ended")
			}
		}
	}
}

// Release gives the lock back: whatever of it is still ours, and nothing that is
// somebody else's. It tries for up to 15 seconds, or as long as ctx lasts. What could
// not be given back is named in the error and expires by itself; Release may then be
// called again. After a success it does nothing.
func (h *Held) Release(ctx context.Context) error {
	h.stop()
	select {
	case <-h.done:
	case <-ctx.Done():
		return fmt.Errorf("giving back the operation lock: %w", context.Cause(ctx))
	}
	h.update(func() { h.released = true })
	return h.giveBack(ctx)
}

// giveBack gives back every part, even if ctx is done: a lock must not outlive what
// it was taken for.
func (h *Held) giveBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockGiveBack)
	defer cancel()
	h.mu.Lock()
	names := slices.Sorted(maps.Keys(h.parts))
	h.mu.Unlock()
	var errs []error
	for _, name := range slices.Backward(names) {
		if err := returnLease(ctx, h.leases, name, h.token); err != nil {
			errs = append(errs, fmt.Errorf("giving back the operation lock %s/%s, which expires %s after its last renewal: %w", Namespace, name, h.req.Lease.TTL, err))
			continue
		}
		h.update(func() { delete(h.parts, name) })
	}
	return errors.Join(errs...)
}

// start begins the renewals.
func (h *Held) start(ctx context.Context) {
	ctx, h.stop = context.WithCancel(ctx)
	h.done = make(chan struct{})
	go h.keep(ctx)
}

// keep renews the lock until ctx is done or the lock is lost.
func (h *Held) keep(ctx context.Context) {
	defer close(h.done)
	suspended := false
	for wait := h.req.Lease.Renew; ; {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-h.kick:
			timer.Stop()
		case <-timer.C:
		}
		err := h.renew(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrLockLost):
			h.update(func() { h.lost = err })
			h.req.Lost(err)
			return
		case err != nil:
			wait = min(lockRetry, h.req.Lease.Renew)
			if !suspended && !h.valid(time.Now()) {
				suspended = true
				h.req.Notify("the operation lock could not be renewed in time and is suspended until the API server answers: " + err.Error())
			}
		default:
			wait = h.req.Lease.Renew
			h.update(func() {})
			if suspended {
				suspended = false
				h.req.Notify("the operation lock has been renewed: going on")
			}
		}
	}
}

// renew renews every part, in order. It stops at the first that the store does not
// answer for: the next would only wait as long.
func (h *Held) renew(ctx context.Context) error {
	for _, name := range h.req.names() {
		if err := h.renewPart(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// renewPart renews one lease, by compare-and-swap and never by creating it anew. A
// conflict is no loss yet: it may be our own renewal whose answer was lost.
func (h *Held) renewPart(ctx context.Context, name string) error {
	for range lockAttempts {
		h.mu.Lock()
		l := h.parts[name].lease.DeepCopy()
		h.mu.Unlock()
		sent := time.Now()
		at := metav1.NewMicroTime(sent)
		l.Spec.RenewTime = &at
		renewed, err := h.updateLease(ctx, l)
		switch {
		case err == nil:
			h.note(name, renewed, sent)
			return nil
		case gone(err):
			return fmt.Errorf("%w: the lease %s/%s has been deleted", ErrLockLost, Namespace, name)
		case !apierrors.IsConflict(err):
			return err
		}
		now, err := getLease(ctx, h.leases, name)
		switch {
		case gone(err):
			return fmt.Errorf("%w: the lease %s/%s has been deleted", ErrLockLost, Namespace, name)
		case err != nil:
			return err
		case !holds(now, h.token):
			i := lockInfo(now, time.Now())
			return fmt.Errorf("%w: the lease %s/%s has been taken by %s for %s", ErrLockLost, Namespace, name, i.Client, i.Operation)
		}
		h.see(name, now)
	}
	return fmt.Errorf("renewing the operation lock %s/%s: somebody else keeps changing the lease", Namespace, name)
}

// updateLease bounds one renewal. Its time is a third of the TTL at most, so that one
// request that hangs does not cost the lock.
func (h *Held) updateLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, min(lockCall, h.req.Lease.TTL/3))
	defer cancel()
	return h.leases.Update(ctx, l)
}

// note records a lease that was taken or renewed by a request sent at that time.
func (h *Held) note(name string, l *coordinationv1.Lease, sent time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.parts[name] = part{l, sent}
}

// see records how a lease is now, which renews nothing.
func (h *Held) see(name string, l *coordinationv1.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.parts[name] = part{l, h.parts[name].sent}
}

// update changes h and wakes whoever waits for a change.
func (h *Held) update(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *Held) isLost() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

// valid reports whether every part is valid.
func (h *Held) valid(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.validLocked(now)
}

func (h *Held) validLocked(now time.Time) bool {
	for _, name := range h.req.names() {
		if p := h.parts[name]; p.lease == nil || !valid(p.sent, now, h.req.Lease.TTL) {
			return false
		}
	}
	return true
}

// String names the leases, for a log.
func (h *Held) String() string { return strings.Join(h.req.names(), ", ") }
