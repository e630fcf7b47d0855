package mke

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/user"
	"slices"
)

// takeLock takes the lock of every target's node, all or none, and then observes
// the hosts again: what was seen before may be what another operation was about
// to change, as two operations that race both pass the checks.
func takeLock(ctx context.Context, r *run, _ []*target) error {
	req := LockRequest{
		Operation: r.op, Scope: r.opts.Role, Lease: r.opts.Lease, Client: client(),
		Lost:   func(err error) { r.abort(err) },
		Notify: func(msg string) { r.note("%s", msg) },
	}
	for _, t := range r.targets {
		req.Nodes = append(req.Nodes, t.nodeName())
		req.Hosts = append(req.Hosts, t.spec.SSH.Address)
	}
	held, err := AcquireLock(ctx, r.opts.Cluster.Leases, req)
	if err != nil {
		return err
	}
	r.held = held
	r.cleanup = append(r.cleanup, func(ctx context.Context) error {
		if err := held.Release(ctx); err != nil {
			r.left("the operation lock of %v: it expires by itself %s after its last renewal; mkectl lock show tells", req.Nodes, r.opts.Lease.TTL)
			return fmt.Errorf("giving back the operation lock: %w", err)
		}
		return nil
	})
	return r.observeAgain(ctx)
}

// nodeName is the name under which the target's node is, or is going to be,
// registered.
func (t *target) nodeName() string {
	if t.node != nil {
		return t.node.Name
	}
	return t.facts.NodeName
}

// observeAgain refuses to go on if a host is no longer as it was observed before the
// lock was taken.
func (r *run) observeAgain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Timeouts.Facts)
	defer cancel()
	nodes, err := r.opts.Cluster.Nodes.List(ctx)
	if err != nil {
		return err
	}
	return r.forEach(ctx, r.targets, func(t *target) error {
		before := *t
		if err := r.observe(ctx, t, nodes); err != nil {
			return err
		}
		if was, is := before.summary(), t.summary(); was != is {
			return &ChangedError{What: "host " + t.ref().String(), Was: was, Now: is}
		}
		return nil
	})
}

// summary says in a line what an operation went by when it decided what to do
// with the target.
func (t *target) summary() string {
	node := "no node"
	if t.node != nil {
		node = fmt.Sprintf("node %s uid %s ready=%t cordoned=%t", t.node.Name, t.node.UID, t.node.Ready, t.node.Cordoned)
	}
	return fmt.Sprintf("scenario %s (%s), machine-id %s, %s", t.scenario.Row, t.scenario.Name, t.facts.MachineID, node)
}

// client says who runs the operation, for those whom its lock keeps out.
func client() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s@%s pid %d", name, host, os.Getpid())
}

// labelsDiffer reports whether the target's node lacks a label that the user
// declared, or has one of ours that is no longer declared.
func labelsDiffer(t *target) bool {
	return t.node == nil || len(labelChange(t)) > 0 || ownedLabels(t.node) != joinKeys(t.labels)
}

// joinKeys is how the names of the labels that we own are written down.
func joinKeys(labels map[string]string) string {
	s := ""
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		if s != "" {
			s += ","
		}
		s += k
	}
	return s
}
