package mke

import (
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The names of the lock's leases and of what is written on them. Nothing here
// waits or talks.
const (
	clusterLease    = "mke-operation"
	nodeLeasePrefix = "mke-node-" // the node's name follows

	lockLabel   = "mke.mirantis.com/lock"
	lockCluster = "cluster"
	lockNode    = "node"

	lockOperation = "mke.mirantis.com/operation"
	lockState     = "mke.mirantis.com/state"
	lockScope     = "mke.mirantis.com/scope"
	lockHosts     = "mke.mirantis.com/hosts"
	lockStarted   = "mke.mirantis.com/started"
	lockClient    = "mke.mirantis.com/client"
)

// names returns the leases that q takes, in the order in which everybody takes
// them.
func (q LockRequest) names() []string {
	if len(q.Nodes) == 0 {
		return []string{clusterLease}
	}
	var names []string
	for _, node := range q.Nodes {
		names = append(names, nodeLeasePrefix+node)
	}
	return names
}

// excludes reports whether the lease of that name, held by another, keeps q from
// being granted although q does not take it: the cluster-wide lock excludes every
// node's, and the other way round.
func (q LockRequest) excludes(name string) bool {
	if len(q.Nodes) == 0 {
		return strings.HasPrefix(name, nodeLeasePrefix)
	}
	return name == clusterLease
}

// concerns reports whether q has to do with the lease of that name.
func (q LockRequest) concerns(name string) bool {
	return q.excludes(name) || slices.Contains(q.names(), name)
}

// state is what the operation does to its nodes.
func (q LockRequest) state() string {
	if q.Operation == Add {
		return "adding"
	}
	return ""
}

// write makes l the lease of q, held by token since now. A lease that another held
// keeps its identity.
func (q LockRequest) write(l *coordinationv1.Lease, token string, now time.Time) {
	kind := lockNode
	if l.Name == clusterLease {
		kind = lockCluster
	}
	l.Namespace = Namespace
	l.Labels = map[string]string{lockLabel: kind}
	l.Annotations = map[string]string{
		lockOperation: string(q.Operation),
		lockState:     q.state(),
		lockScope:     string(q.Scope),
		lockHosts:     strings.Join(q.Hosts, ","),
		lockStarted:   now.UTC().Format(time.RFC3339),
		lockClient:    q.Client,
	}
	if l.Spec.HolderIdentity != nil {
		transitions := int32(1)
		if l.Spec.LeaseTransitions != nil {
			transitions += *l.Spec.LeaseTransitions
		}
		l.Spec.LeaseTransitions = &transitions
	}
	seconds := int32((q.Lease.TTL + time.Second - 1) / time.Second)
	at := metav1.NewMicroTime(now)
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = &token, &seconds
	l.Spec.AcquireTime, l.Spec.RenewTime = &at, &at
}

// adopts reports whether q asks for the lock of another run of the very same
// operation, should that run have died.
func (q LockRequest) adopts(l *coordinationv1.Lease) bool {
	return q.Lease.AdoptStale && q.same(l)
}

// same reports whether l is of the same operation, scope and hosts.
func (q LockRequest) same(l *coordinationv1.Lease) bool {
	return l.Annotations[lockOperation] == string(q.Operation) &&
		l.Annotations[lockScope] == string(q.Scope) &&
		slices.Equal(addressKeys(strings.Split(l.Annotations[lockHosts], ",")), addressKeys(q.Hosts))
}

func addressKeys(addresses []string) []string {
	var keys []string
	for _, a := range addresses {
		if a != "" {
			keys = append(keys, addressKey(a))
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// holds reports whether token holds l.
func holds(l *coordinationv1.Lease, token string) bool {
	return l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity == token
}

// lasts is how long after a renewal l expires.
func lasts(l *coordinationv1.Lease) time.Duration {
	if s := l.Spec.LeaseDurationSeconds; s != nil && *s > 0 {
		return time.Duration(*s) * time.Second
	}
	return time.Minute
}

// renewed is when l was last renewed, by its holder's clock.
func renewed(l *coordinationv1.Lease) time.Time {
	switch {
	case l.Spec.RenewTime != nil:
		return l.Spec.RenewTime.Time
	case l.Spec.AcquireTime != nil:
		return l.Spec.AcquireTime.Time
	}
	return l.CreationTimestamp.Time
}

// expired reports whether l has expired by its own time. That alone gives nobody
// the right to it: its holder's clock may be wrong.
func expired(l *coordinationv1.Lease, now time.Time) bool {
	return now.Sub(renewed(l)) > lasts(l)
}

// unchanged reports whether b is a exactly as it was: not renewed, not
// re-created.
func unchanged(a, b *coordinationv1.Lease) bool {
	return a.UID == b.UID && a.ResourceVersion == b.ResourceVersion
}

// valid reports whether a renewal that was sent at that time still counts. Both of
// the machine's clocks have a say: the one stands still while the machine sleeps,
// the other can be set.
func valid(sent, now time.Time, ttl time.Duration) bool {
	return now.Sub(sent) < ttl && now.Round(0).Sub(sent.Round(0)) < ttl
}

// lockInfo reads what the holder of l wrote into it.
func lockInfo(l *coordinationv1.Lease, now time.Time) LockInfo {
	i := LockInfo{
		Lease:     l.Name,
		Operation: l.Annotations[lockOperation],
		State:     l.Annotations[lockState],
		Scope:     l.Annotations[lockScope],
		Client:    l.Annotations[lockClient],
		Renewed:   renewed(l),
		Expires:   renewed(l).Add(lasts(l)),
		Stale:     expired(l, now),
	}
	if i.Operation == "" {
		i.Operation = "an unknown operation"
	}
	if i.Client == "" {
		i.Client = "an unknown client"
	}
	if h := l.Annotations[lockHosts]; h != "" {
		i.Hosts = strings.Split(h, ",")
	}
	started, err := time.Parse(time.RFC3339, l.Annotations[lockStarted])
	if err != nil {
		started = l.CreationTimestamp.Time
	}
	i.Started = started
	return i
}

// locked says that l keeps q out, and what would help.
func (q LockRequest) locked(l *coordinationv1.Lease, now time.Time) *LockedError {
	e := &LockedError{Lease: l.Name, Lock: lockInfo(l, now)}
	clear := fmt.Sprintf("kubectl -n %s delete lease %s", Namespace, l.Name)
	switch {
	case e.Lock.Stale && q.same(l) && !q.Lease.AdoptStale:
		e.Hint = "if that run is dead, ask to adopt its stale lease (mkectl --lease-adopt-stale)"
	case e.Lock.Stale:
		e.Hint = "it is of another operation, scope or hosts and so is not adopted; if that run is dead: " + clear
	case renewed(l).Sub(now) > lasts(l):
		e.Hint = "the clock of its holder is ahead of this machine's; if that run is dead: " + clear
	}
	return e
}
