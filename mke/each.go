package mke

import (
	"context"
	"errors"
	"sync"
)

// each makes a step out of what is done for one host. The hosts are worked on
// side by side, as many as Options.Concurrency allows, and all of them to the
// end: one host's failure does not cut short another's bootstrap. Once a stop is
// asked for no further host is begun. Each host that is done is an event.
func each(f func(context.Context, *run, *target) error) func(context.Context, *run, []*target) error {
	return func(ctx context.Context, r *run, on []*target) error {
		done := 0
		return r.forEach(ctx, on, func(t *target) error {
			err := f(ctx, r, t)
			r.mu.Lock()
			defer r.mu.Unlock()
			done++
			ref := t.ref()
			e := Event{Kind: Progress, Host: &ref, Done: done, Message: "done"}
			if err != nil {
				e.Message = "failed: " + err.Error()
			}
			r.emitLocked(e)
			return err
		})
	}
}

// forEach calls f for every host, as each does, without events.
func (r *run) forEach(ctx context.Context, on []*target, f func(*target) error) error {
	width := r.opts.Concurrency
	if width < 0 {
		width = len(on)
	}
	errs := make([]error, len(on))
	panics := make([]any, len(on))
	slots := make(chan struct{}, width)
	var wg sync.WaitGroup
	for i, t := range on {
		slots <- struct{}{}
		if err := r.stopped(ctx); err != nil {
			errs[i] = r.blame(t.ref(), err)
			<-slots
			continue
		}
		wg.Go(func() {
			defer func() { panics[i] = recover(); <-slots }()
			if err := f(t); err != nil {
				errs[i] = r.blame(t.ref(), causeOf(ctx, err))
			}
		})
	}
	wg.Wait()
	for _, p := range panics {
		if p != nil {
			panic(p) // on the operation's own goroutine, where the lock is given back on the way out
		}
	}
	return errors.Join(errs...)
}
