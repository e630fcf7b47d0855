package mke

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/transport"
)

// cleanupTime bounds everything that is given back at the end of an operation.
const cleanupTime = 30 * time.Second

// A step is a stage and what it does.
type step struct {
	stage Stage
	kind  kind
	on    selector
	do    func(context.Context, *run, []*target) error
}

// A kind says what a stage may do.
type kind int

const (
	check  kind = iota // looks and may refuse
	change             // alters a host or the cluster: it begins only under a lock that is held
	wait               // waits for a change to show
)

// A selector picks the hosts that a stage is for. Without any the stage is
// skipped. The zero selector is for stages that are not about hosts.
type selector struct {
	are  string // completes "no host is"
	pick func(*run, *target) bool
}

// A run is one call of an operation. Every field is written by the one stage
// that its comment names and only read after it.
type run struct {
	op      Operation
	opts    Options
	steps   []step
	targets []*target

	config      MkeConfig         // Reachability
	helper      transport.Conn    // Reachability
	helperRef   HostRef           // Reachability
	ca          string            // Reachability: the cluster CA's fingerprint, as the helper has it
	helperFacts hosts.Facts       // Reachability
	k0sVersion  string            // Reachability: the cluster's, which is the helper's
	binaries    map[string]Binary // RegistryCheck: by architecture
	nodes       nodeList          // Verification
	held        *Held             // OperationLock

	abort   context.CancelCauseFunc       // ends the run at once; a lost lock calls it
	cleanup []func(context.Context) error // run in reverse at the end
	result  Result

	mu      sync.Mutex // guards current, OnEvent, result.Left and target.did
	current Event      // stage, position and length of what is running
}

func operate(ctx context.Context, op Operation, opts Options) (Result, error) {
	opts = opts.withDefaults()
	if err := opts.validate(op); err != nil {
		return Result{}, fmt.Errorf("%s: %w", op, err)
	}
	r := &run{op: op, opts: opts, steps: sequence(op, opts.Role), binaries: map[string]Binary{}}
	for _, h := range opts.Hosts {
		if h.Role == opts.Role {
			r.targets = append(r.targets, &target{spec: h})
		} else {
			r.result.OutOfScope = append(r.result.OutOfScope, HostRef{Address: h.SSH.Address})
		}
	}
	err := r.do(ctx)
	r.result.Helper = r.helperRef
	for _, t := range r.targets {
		r.result.Hosts = append(r.result.Hosts, HostResult{
			Host: t.ref(), Scenario: t.scenario.Row, Name: t.scenario.Name, Did: t.did,
		})
	}
	return r.result, err
}

// do runs the steps in order. On every way out, a panic among them, it calls the
// cleanups, last first, even if ctx is done: a lock must not outlive the
// operation that took it.
func (r *run) do(ctx context.Context) (err error) {
	ctx, r.abort = context.WithCancelCause(ctx)
	defer func() {
		r.abort(nil)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		for _, f := range slices.Backward(r.cleanup) {
			err = errors.Join(err, f(ctx))
		}
	}()
	for i, s := range r.steps {
		if err := r.step(ctx, i, s); err != nil {
			return err
		}
	}
	return nil
}

// step runs one step, with its events.
func (r *run) step(ctx context.Context, i int, s step) error {
	r.mu.Lock()
	r.current = Event{Stage: s.stage, N: i + 1, Of: len(r.steps)}
	r.mu.Unlock()
	on := r.pick(s.on)
	if s.on.pick != nil && len(on) == 0 {
		r.emit(Event{Kind: Skipped, Message: "no host is " + s.on.are})
		return nil
	}
	r.emit(Event{Kind: Started, Hosts: refs(on)})
	start := time.Now()
	err := r.mayBegin(ctx, s)
	if err == nil {
		err = s.do(ctx, r, on)
	}
	elapsed := time.Since(start).Milliseconds()
	if err != nil {
		err = r.blame(HostRef{}, causeOf(ctx, err))
		r.emit(Event{Kind: Failed, ElapsedMS: elapsed, Error: err.Error()})
		return err
	}
	r.emit(Event{Kind: Finished, ElapsedMS: elapsed})
	return nil
}

// mayBegin refuses to begin a step after a stop was asked for, or one that
// changes something without the lock.
func (r *run) mayBegin(ctx context.Context, s step) error {
	if err := r.stopped(ctx); err != nil {
		return err
	}
	if s.kind == change && s.stage != OperationLock {
		return r.guard(ctx)
	}
	return nil
}

// guard returns nil if the lock is held at this moment. While the store of the
// lock is away it waits. What can't be undone calls it right before it acts.
func (r *run) guard(ctx context.Context) error {
	if r.held == nil {
		return fmt.Errorf("%w: it was never taken", ErrLockLost)
	}
	return r.held.Check(ctx)
}

// stopped returns an error if the operation is to end: its context is done, or
// Options.Stop is closed.
func (r *run) stopped(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-r.opts.Stop:
		return ErrStopped
	default:
		return nil
	}
}

// waiting returns a context for a wait: one that Options.Stop ends too, after grace, so
// that a wait is always a safe point.
func (r *run) waiting(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if r.opts.Stop == nil {
		return ctx, func() { cancel(nil) }
	}
	go func() {
		select {
		case <-r.opts.Stop:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(grace):
			cancel(ErrStopped)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// causeOf adds to err why ctx was ended, if that is what err is about and err
// does not say it: a lost lock must not look like an anonymous cancellation.
func causeOf(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) || !errors.Is(err, context.Canceled) {
		return err
	}
	return errors.Join(cause, err)
}

func (r *run) pick(s selector) (on []*target) {
	for _, t := range r.targets {
		if s.pick != nil && s.pick(r, t) {
			on = append(on, t)
		}
	}
	return on
}

// blame makes err a *StageError, unless it is one already.
func (r *run) blame(host HostRef, err error) error {
	if _, ok := errors.AsType[*StageError](err); ok || err == nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return &StageError{Operation: r.op, Stage: r.current.Stage, Host: host, Err: err}
}
