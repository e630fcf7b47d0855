package transport

import (
	"context"
	"slices"
	"sync"
)

// A budget bounds how many of something are used at once. Those who wait are served in their order.
type budget struct {
	mu      sync.Mutex
	limit   int
	used    int
	waiting []chan struct{}
}

func newBudget(limit int) *budget { return &budget{limit: limit} }

// acquire takes one, waiting for it until ctx or closed ends; it reports whether it did.
// What was taken is given back with release.
func (b *budget) acquire(ctx context.Context, closed <-chan struct{}) bool {
	b.mu.Lock()
	if b.used < b.limit && len(b.waiting) == 0 {
		b.used++
		b.mu.Unlock()
		return true
	}
	turn := make(chan struct{})
	b.waiting = append(b.waiting, turn)
	b.mu.Unlock()
	select {
	case <-turn:
		return true
	case <-ctx.Done():
	case <-closed:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.waiting, turn); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
		return false
	}
	b.used-- // our turn came at the same moment
	b.serve()
	return false
}

// release gives one back.
func (b *budget) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used--
	b.serve()
}

// lower notes that one fewer is to be had than were used: the caller holds one that it
// could not use, and gives it back. It reports whether others are in use, so that waiting
// has a point.
func (b *budget) lower() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used--
	b.limit = max(1, min(b.limit, b.used))
	b.serve()
	return b.used > 0
}

// serve hands what is free to those who wait. The caller holds mu.
func (b *budget) serve() {
	for b.used < b.limit && len(b.waiting) > 0 {
		b.used++
		close(b.waiting[0])
		b.waiting = b.waiting[1:]
	}
}
