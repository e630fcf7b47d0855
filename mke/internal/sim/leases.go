package sim

import (
	"context"
	"strconv"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// leases are the Leases of the world, with the API server's rules about
// resourceVersion.
type leases struct {
	mu      sync.Mutex
	byName  map[string]lease
	version int
}

type lease = coordinationv1.Lease

func resource() schema.GroupResource {
	return schema.GroupResource{Group: coordinationv1.GroupName, Resource: "leases"}
}

func (s *leases) Get(_ context.Context, name string) (*lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.byName[name]
	if !ok {
		return nil, apierrors.NewNotFound(resource(), name)
	}
	return l.DeepCopy(), nil
}

func (s *leases) List(context.Context) (all []lease, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.byName {
		all = append(all, *l.DeepCopy())
	}
	return all, nil
}

func (s *leases) Create(_ context.Context, l *lease) (*lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.byName[l.Name]; ok {
		return nil, apierrors.NewAlreadyExists(resource(), l.Name)
	}
	return s.put(l), nil
}

func (s *leases) Update(_ context.Context, l *lease) (*lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.same(l.Name, string(l.UID), l.ResourceVersion); err != nil {
		return nil, err
	}
	return s.put(l), nil
}

func (s *leases) Delete(_ context.Context, name, uid, resourceVersion string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.same(name, uid, resourceVersion); err != nil {
		return err
	}
	delete(s.byName, name)
	return nil
}

func (s *leases) same(name, uid, resourceVersion string) error {
	old, ok := s.byName[name]
	if !ok {
		return apierrors.NewNotFound(resource(), name)
	}
	if resourceVersion != "" && old.ResourceVersion != resourceVersion || uid != "" && string(old.UID) != uid {
		return apierrors.NewConflict(resource(), name, nil)
	}
	return nil
}

func (s *leases) put(l *lease) *lease {
	s.version++
	l = l.DeepCopy()
	l.ResourceVersion = strconv.Itoa(s.version)
	if l.UID == "" {
		l.UID = types.UID("lease-" + l.ResourceVersion)
	}
	s.byName[l.Name] = *l
	return l.DeepCopy()
}
