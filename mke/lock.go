package mke

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mkesdk/mkesdk/hosts"
)

// LockRequest says what to lock and for what.
type LockRequest struct {
	// Operation is what the lock is for. Required.
	Operation Operation
	// Scope is the role that is operated on; empty if the operation has none.
	Scope hosts.Role
	// Nodes are the names of the nodes to lock, all of them or none. Without any
	// it is the cluster-wide lock, which excludes every other.
	Nodes []string
	// Hosts are the SSH addresses of the hosts that the operation is about.
	Hosts []string
	// Lease bounds the lock; its zero fields take the documented defaults. The
	// lease in the cluster counts in whole seconds, rounded up.
	Lease Lease
	// Client says who asks, for those whom the lock keeps out: user@host and pid.
	Client string

	// Lost, if set, is called once if the lock is lost while it is held, with an
	// error that matches ErrLockLost. It must return soon and must not call
	// Release.
	Lost func(error)
	// Notify, if set, is told in words what is being waited for: from another
	// goroutine, and never after Release has returned.
	Notify func(string)
}

// Bounds of taking a lock.
const (
	// lockAttempts is how often a race between the two kinds of lock is run again.
	lockAttempts = 5
	// lockRaceDelay is the longest random delay before it is. It is many times
	// what taking a lock takes, so that two that start again together are rare.
	lockRaceDelay = 2 * time.Second
	// lockCall bounds one request to the store, lockGiveBack all that it takes to
	// give a lock back.
	lockCall     = 10 * time.Second
	lockGiveBack = 15 * time.Second
	// lockPoll is how often a lease is looked at that may be stale, and lockRetry
	// how often a store is asked again that does not answer.
	lockPoll  = 2 * time.Second
	lockRetry = 2 * time.Second
)

// AcquireLock takes the lock that req describes, or says who holds it: the error
// then matches [ErrLocked] and is, or joins, [*LockedError]. What was taken of a
// lock that could not be had as a whole is given back.
//
// A lease whose holder has let it lapse is not free: its holder may be asleep. It is
// refused as stale, unless Lease.AdoptStale is set and it is of the same operation,
// scope and hosts. Then AcquireLock watches it for as long as it was to last, and
// takes it over if it was not renewed meanwhile and has expired by its own time too,
// so that a clock that is wrong can neither steal a lock nor keep one for ever.
//
// The lock is renewed until Release is called or ctx is done; either way only
// Release gives it back.
func AcquireLock(ctx context.Context, leases Leases, req LockRequest) (*Held, error) {
	req, err := req.complete()
	if err != nil {
		return nil, err
	}
	a := &acquisition{leases: leases, req: req, token: rand.Text()}
	for attempt := 1; ; attempt++ {
		held, err := a.try(ctx)
		var raced *racedError
		if err == nil || !errors.As(err, &raced) || attempt == lockAttempts {
			return held, err
		}
		delay := lockRaceDelay/20 + mathrand.N(lockRaceDelay)
		req.Notify(fmt.Sprintf("another operation asked for the lock %s at the same moment: trying again in %s", raced.locked.Lease, delay.Round(time.Millisecond)))
		if err := sleep(ctx, delay); err != nil {
			return nil, err
		}
	}
}

// complete returns q with its defaults, or says all that is wrong with it.
func (q LockRequest) complete() (LockRequest, error) {
	setDefault(&q.Lease.TTL, time.Minute)
	setDefault(&q.Lease.Renew, 20*time.Second)
	setDefault(&q.Client, "unknown")
	if q.Lost == nil {
		q.Lost = func(error) {}
	}
	if q.Notify == nil {
		q.Notify = func(string) {}
	}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if q.Operation == "" {
		bad("LockRequest.Operation is empty: want what the lock is for")
	}
	if q.Lease.TTL < 0 || q.Lease.Renew < 0 || q.Lease.Renew >= q.Lease.TTL {
		bad("LockRequest.Lease is renewed every %s and expires after %s: want the first positive and shorter than the second", q.Lease.Renew, q.Lease.TTL)
	}
	for _, node := range q.Nodes {
		if node == "" {
			bad("LockRequest.Nodes has a node without a name")
		} else if problems := validation.IsDNS1123Subdomain(nodeLeasePrefix + node); len(problems) > 0 {
			bad("LockRequest.Nodes: the name %q of a node cannot be part of that of a lease: %s", node, problems[0])
		}
	}
	if err := errors.Join(errs...); err != nil {
		return q, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	q.Nodes = slices.Compact(slices.Sorted(slices.Values(q.Nodes)))
	return q, nil
}

// sleep waits, and returns why ctx was ended if it is before the time is up.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
