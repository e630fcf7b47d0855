package e2e

import (
	"context"
	"errors"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/mkesdk/mkesdk/mke"
)

// A gate is a store of leases that can be cut off from one client.
type gate struct {
	mke.Leases
	mu  sync.Mutex
	off bool
}

var errCut = errors.New("the network is cut")

func (g *gate) cut(off bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.off = off
}

func (g *gate) err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.off {
		return errCut
	}
	return nil
}

func (g *gate) Get(ctx context.Context, name string) (*coordinationv1.Lease, error) {
	if err := g.err(); err != nil {
		return nil, err
	}
	return g.Leases.Get(ctx, name)
}

func (g *gate) List(ctx context.Context) ([]coordinationv1.Lease, error) {
	if err := g.err(); err != nil {
		return nil, err
	}
	return g.Leases.List(ctx)
}

func (g *gate) Create(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if err := g.err(); err != nil {
		return nil, err
	}
	return g.Leases.Create(ctx, l)
}

func (g *gate) Update(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if err := g.err(); err != nil {
		return nil, err
	}
	return g.Leases.Update(ctx, l)
}

func (g *gate) Delete(ctx context.Context, name, uid, resourceVersion string) error {
	if err := g.err(); err != nil {
		return err
	}
	return g.Leases.Delete(ctx, name, uid, resourceVersion)
}
