package mke

import (
	"fmt"
	"time"
)

// emit completes e with what is running and hands it over.
func (r *run) emit(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.emitLocked(e)
}

func (r *run) emitLocked(e Event) {
	e.Time, e.Stage, e.N, e.Of = time.Now(), r.current.Stage, r.current.N, r.current.Of
	if e.Total == 0 { // moving bytes are for a screen
		r.log(e)
	}
	r.opts.OnEvent(e)
}

// log writes an event for those who maintain the caller. Nothing is said here that
// is not said by the event.
func (r *run) log(e Event) {
	attrs := []any{"op", r.op, "stage", e.Stage, "kind", e.Kind}
	if e.Host != nil {
		attrs = append(attrs, "host", e.Host.Address, "node", e.Host.Node)
	}
	if e.Error != "" {
		attrs = append(attrs, "error", e.Error)
	}
	r.opts.Logger.Debug(e.Message, attrs...)
}

// progress reports something within the running stage, about one host.
func (r *run) progress(t *target, format string, args ...any) {
	ref := t.ref()
	r.emit(Event{Kind: Progress, Host: &ref, Message: fmt.Sprintf(format, args...)})
}

// note reports something within the running stage, about the cluster.
func (r *run) note(format string, args ...any) {
	r.emit(Event{Kind: Progress, Message: fmt.Sprintf(format, args...)})
}

// warn reports what should not be overlooked, about one host or, if t is nil,
// about the cluster.
func (r *run) warn(t *target, format string, args ...any) {
	e := Event{Kind: Progress, Warning: true, Message: fmt.Sprintf(format, args...)}
	if t != nil {
		ref := t.ref()
		e.Host = &ref
	}
	r.emit(e)
}

// did records what was done to a host.
func (r *run) did(t *target, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.did = append(t.did, what)
}

// left records what could not be cleaned up.
func (r *run) left(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Left = append(r.result.Left, fmt.Sprintf(format, args...))
}
