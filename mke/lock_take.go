package mke

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An acquisition is the way to one lock, over several attempts.
type acquisition struct {
	leases Leases
	req    LockRequest
	token  string
}

// A racedError is a lock of the other kind that came while ours was being taken.
// Its holder will have seen ours too and backs off as we do, so that trying again
// is worth it.
type racedError struct{ locked *LockedError }

func (e *racedError) Error() string { return e.locked.Error() }
func (e *racedError) Unwrap() error { return e.locked }

// try takes all leases of the request and then looks at the other kind. Of two
// that race each takes its own before it looks, so that at least one of them sees the
// other.
func (a *acquisition) try(ctx context.Context) (_ *Held, err error) {
	stale, err := a.look(ctx)
	if err != nil {
		return nil, err
	}
	h := newHeld(a)
	defer func() {
		if err != nil {
			err = errors.Join(err, h.giveBack(ctx))
		}
	}()
	for _, name := range a.req.names() {
		h.note(name, nil, time.Time{}) // from here on there may be a lease to give back
		l, sent, err := a.take(ctx, name, stale[name])
		if err != nil {
			return nil, err
		}
		h.note(name, l, sent)
	}
	if err := a.lookAcross(ctx, stale); err != nil {
		return nil, err
	}
	if !h.valid(time.Now()) {
		return nil, fmt.Errorf("taking the operation lock took longer than the %s for which it lasts: the API server is too slow", a.req.Lease.TTL)
	}
	h.start(ctx)
	return h, nil
}

// look returns the stale leases that may be taken over. Every other lease that the
// request has to do with is an error.
func (a *acquisition) look(ctx context.Context) (map[string]*coordinationv1.Lease, error) {
	all, err := a.list(ctx)
	if err != nil {
		return nil, err
	}
	stale := map[string]*coordinationv1.Lease{}
	var errs []error
	var wait time.Duration
	for _, l := range all {
		switch {
		case holds(l, a.token):
		case a.req.adopts(l):
			stale[l.Name] = l
			wait = max(wait, lasts(l))
		default:
			errs = append(errs, a.req.locked(l, time.Now()))
		}
	}
	if err := errors.Join(errs...); err != nil || len(stale) == 0 {
		return nil, err
	}
	a.req.Notify(fmt.Sprintf("watching for %s whether the lock %s is still renewed", wait, strings.Join(slices.Sorted(maps.Keys(stale)), ", ")))
	return stale, a.watch(ctx, stale, wait)
}

// watch returns nil if none of the leases is renewed for as long as it takes this
// machine to be sure, by a clock that nobody sets, and each has expired by its own
// time as well. Leases that go away meanwhile are dropped from stale.
func (a *acquisition) watch(ctx context.Context, stale map[string]*coordinationv1.Lease, wait time.Duration) error {
	for start := time.Now(); ; {
		over := time.Since(start) > wait
		all, err := a.list(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && over:
			return err
		case err == nil:
			for name, l := range stale {
				now, there := all[name]
				switch {
				case !there:
					delete(stale, name)
				case !unchanged(l, now), over && !expired(now, time.Now()):
					return a.req.locked(now, time.Now())
				}
			}
			if over || len(stale) == 0 {
				return nil
			}
		}
		// The last look comes after the time is up, by a hair, not at it.
		if err := sleep(ctx, min(lockPoll, wait-time.Since(start)+time.Millisecond)); err != nil {
			return err
		}
	}
}

// list returns what the request has to do with, by name. A store that does not answer
// is asked a few times.
func (a *acquisition) list(ctx context.Context) (map[string]*coordinationv1.Lease, error) {
	var all []coordinationv1.Lease
	for attempt := 1; ; attempt++ {
		var err error
		if all, err = listLeases(ctx, a.leases); err == nil {
			break
		}
		if !ambiguous(err) || attempt == lockAttempts {
			return nil, fmt.Errorf("looking for operation locks: %w", err)
		}
		if ended := sleep(ctx, lockRetry); ended != nil {
			return nil, fmt.Errorf("looking for operation locks: %w", errors.Join(ended, err))
		}
	}
	found := map[string]*coordinationv1.Lease{}
	for i := range all {
		if a.req.concerns(all[i].Name) {
			found[all[i].Name] = &all[i]
		}
	}
	return found, nil
}

// lookAcross refuses if a lock of the other kind is there. A stale one that may be
// taken over is deleted instead: left alone, its holder could wake up and renew it.
func (a *acquisition) lookAcross(ctx context.Context, stale map[string]*coordinationv1.Lease) error {
	all, err := a.list(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		l := all[name]
		if !a.req.excludes(name) || holds(l, a.token) {
			continue
		}
		if s := stale[name]; s == nil || !unchanged(s, l) {
			return &racedError{a.req.locked(l, time.Now())}
		}
		if err := removeLease(ctx, a.leases, l); err != nil {
			return fmt.Errorf("deleting the stale operation lock %s/%s: %w", Namespace, name, err)
		}
	}
	return nil
}

// take makes the lease of that name ours: it is created, or, if it is stale, changed
// under the condition that it still is as it was seen. It returns when the request
// that did it went out. A request whose answer is lost may have taken effect: the
// token tells, and then the time is that of the first that may have been it.
func (a *acquisition) take(ctx context.Context, name string, stale *coordinationv1.Lease) (*coordinationv1.Lease, time.Time, error) {
	first := time.Now()
	var err error
	for range lockAttempts {
		sent := time.Now()
		var l *coordinationv1.Lease
		if l, err = a.put(ctx, name, stale); err == nil {
			return l, sent, nil
		}
		settled := apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || stale != nil && gone(err)
		if !settled && !ambiguous(err) {
			break
		}
		now, getErr := getLease(ctx, a.leases, name)
		switch {
		case getErr == nil && holds(now, a.token):
			return now, first, nil
		case getErr == nil && (stale == nil || !unchanged(stale, now)):
			return nil, first, a.req.locked(now, time.Now())
		case gone(getErr):
			stale = nil // given back by its holder: anybody's
		}
		if !settled || getErr != nil && !gone(getErr) {
			if err := sleep(ctx, lockRetry); err != nil {
				return nil, first, err
			}
		}
	}
	return nil, first, fmt.Errorf("taking the operation lock %s/%s: %w", Namespace, name, err)
}

// put sends the one request that makes the lease ours.
func (a *acquisition) put(ctx context.Context, name string, stale *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, lockCall)
	defer cancel()
	if stale == nil {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
		a.req.write(l, a.token, time.Now())
		return a.leases.Create(ctx, l)
	}
	l := stale.DeepCopy()
	a.req.write(l, a.token, time.Now())
	return a.leases.Update(ctx, l)
}
