package mke

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// A leaseStore keeps leases in memory by the rules of the Kubernetes API.
type leaseStore struct {
	mu      sync.Mutex
	leases  map[string]*coordinationv1.Lease
	version int
	created int
}

func newLeaseStore() *leaseStore {
	return &leaseStore{leases: map[string]*coordinationv1.Lease{}}
}

var leaseResource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func (s *leaseStore) get(name string) (*coordinationv1.Lease, error) {
	l, ok := s.leases[name]
	if !ok {
		return nil, apierrors.NewNotFound(leaseResource, name)
	}
	return l.DeepCopy(), nil
}

func (s *leaseStore) put(l *coordinationv1.Lease) *coordinationv1.Lease {
	s.version++
	l = l.DeepCopy()
	l.ResourceVersion = strconv.Itoa(s.version)
	s.leases[l.Name] = l
	return l.DeepCopy()
}

func (s *leaseStore) create(l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if _, ok := s.leases[l.Name]; ok {
		return nil, apierrors.NewAlreadyExists(leaseResource, l.Name)
	}
	s.created++
	l = l.DeepCopy()
	l.UID, l.CreationTimestamp = types.UID(fmt.Sprintf("uid-%d", s.created)), metav1.Now()
	return s.put(l), nil
}

func (s *leaseStore) update(l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	old, err := s.get(l.Name)
	if err != nil {
		return nil, err
	}
	if old.ResourceVersion != l.ResourceVersion || old.UID != l.UID {
		return nil, apierrors.NewConflict(leaseResource, l.Name, errors.New("the object has been modified"))
	}
	return s.put(l), nil
}

func (s *leaseStore) delete(name, uid, resourceVersion string) error {
	old, err := s.get(name)
	if err != nil {
		return err
	}
	if string(old.UID) != uid || old.ResourceVersion != resourceVersion {
		return apierrors.NewConflict(leaseResource, name, errors.New("the preconditions are not met"))
	}
	delete(s.leases, name)
	return nil
}

// names returns what is in the store, for a test to look at.
func (s *leaseStore) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name := range s.leases {
		names = append(names, name)
	}
	return names
}

// A fault is what becomes of one request.
type fault int

const (
	works     fault = iota
	refused         // it does not arrive
	replyLost       // it takes effect and nobody learns of it
	late            // the client gives up, and then it takes effect
)

// A leaseClient is one process's way to the store: with its own clock, and with
// faults. It is the Leases of the tests.
type leaseClient struct {
	store   *leaseStore
	offset  time.Duration                 // of the client's clock
	latency time.Duration                 // the most that a request takes
	fault   func(verb, name string) fault // nil if everything works

	mu     sync.Mutex
	frozen time.Time // until then no request is answered
	sent   []string  // verb and name of each request
}

// do sends one request: f is what it does to the store.
func (c *leaseClient) do(ctx context.Context, verb, name string, f func() error) error {
	c.mu.Lock()
	c.sent = append(c.sent, verb+" "+name)
	wait := time.Until(c.frozen)
	c.mu.Unlock()
	if c.latency > 0 {
		wait = max(wait, 0) + rand.N(c.latency)
	}
	if wait > 0 {
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
	how := works
	if c.fault != nil {
		how = c.fault(verb, name)
	}
	apply := func() error {
		c.store.mu.Lock()
		defer c.store.mu.Unlock()
		return f()
	}
	lost := errors.New("the connection was reset")
	switch how {
	case refused:
		return lost
	case replyLost:
		_ = apply()
		return lost
	case late:
		done := make(chan struct{})
		go func() {
			defer close(done)
			<-ctx.Done()
			time.Sleep(rand.N(90 * time.Second))
			_ = apply()
		}()
		<-ctx.Done()
		return ctx.Err()
	}
	return apply()
}

// shift moves the times of a lease between the client's clock and the test's.
func shift(l *coordinationv1.Lease, by time.Duration) *coordinationv1.Lease {
	if l == nil {
		return nil
	}
	l = l.DeepCopy()
	for _, t := range []*metav1.MicroTime{l.Spec.RenewTime, l.Spec.AcquireTime} {
		if t != nil {
			t.Time = t.Add(by)
		}
	}
	return l
}

// What a late request finds goes to a variable of its own, which nobody reads.

func (c *leaseClient) Get(ctx context.Context, name string) (*coordinationv1.Lease, error) {
	var got *coordinationv1.Lease
	if err := c.do(ctx, "get", name, func() (err error) { got, err = c.store.get(name); return err }); err != nil {
		return nil, err
	}
	return shift(got, -c.offset), nil
}

func (c *leaseClient) List(ctx context.Context) ([]coordinationv1.Lease, error) {
	var got []coordinationv1.Lease
	err := c.do(ctx, "list", "", func() error {
		for _, l := range c.store.leases {
			if l.Labels[lockLabel] != "" {
				got = append(got, *shift(l, -c.offset))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return got, nil
}

func (c *leaseClient) Create(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	l = shift(l, c.offset)
	var got *coordinationv1.Lease
	if err := c.do(ctx, "create", l.Name, func() (err error) { got, err = c.store.create(l); return err }); err != nil {
		return nil, err
	}
	return shift(got, -c.offset), nil
}

func (c *leaseClient) Update(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	l = shift(l, c.offset)
	var got *coordinationv1.Lease
	if err := c.do(ctx, "update", l.Name, func() (err error) { got, err = c.store.update(l); return err }); err != nil {
		return nil, err
	}
	return shift(got, -c.offset), nil
}

func (c *leaseClient) Delete(ctx context.Context, name, uid, resourceVersion string) error {
	return c.do(ctx, "delete", name, func() error { return c.store.delete(name, uid, resourceVersion) })
}

// freeze keeps the client's requests from being answered for a while.
func (c *leaseClient) freeze(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = time.Now().Add(d)
}
