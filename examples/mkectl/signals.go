package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// errInterrupted is the cause of a context that a second Ctrl-C ended.
var errInterrupted = errors.New("interrupted")

// interrupts turns the first Ctrl-C (or SIGTERM) into a closed stop, and the
// second into a context that is done. say is told of each. end gives the signals back.
func interrupts(parent context.Context, say func(string)) (ctx context.Context, stop <-chan struct{}, end func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		for n := 1; ; n++ {
			select {
			case <-done:
				return
			case <-signals:
			}
			switch n {
			case 1:
				close(stopped)
				say("stopping at the next safe point: what was begun on a host is finished, and the lock is given back; Ctrl-C again ends at once")
			case 2:
				cancel(errInterrupted)
				say("ending at once; the lock is given back")
			}
		}
	}()
	return ctx, stopped, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}
