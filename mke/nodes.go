package mke

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Annotations of ours on Nodes.
const (
	// uncordonOwed is written on a stale, cordoned Node before its host is
	// installed anew: a run killed in between then still knows that the node is to be
	// un-cordoned, and one that an administrator cordoned stays cordoned.
	uncordonOwed = "mke.mirantis.com/uncordon-owed"
	// managedLabels names the labels that we own on a Node, so that a later
	// reconciliation can remove what is no longer declared.
	managedLabels = "mke.mirantis.com/managed-labels"
)

// uncordon makes a node schedulable that was cordoned when its host was
// installed anew. It does nothing to a node that is schedulable.
func uncordon(ctx context.Context, r *run, t *target) error {
	n, err := r.opts.Cluster.Nodes.Get(ctx, t.nodeName())
	if err != nil {
		return fmt.Errorf("reading node %s: %w", t.nodeName(), err)
	}
	off := false
	patch := NodePatch{UID: n.UID, Annotations: map[string]*string{uncordonOwed: nil}}
	if n.Cordoned {
		patch.Cordoned = &off
	}
	if err := r.guard(ctx); err != nil {
		return err
	}
	if err := r.opts.Cluster.Nodes.Patch(ctx, n.Name, patch); err != nil {
		return fmt.Errorf("un-cordoning node %s: %w", n.Name, err)
	}
	t.owed = false
	r.did(t, "un-cordoned")
	return nil
}

// verifyReady waits until the target's node appears and is Ready, and is this
// machine's.
func verifyReady(ctx context.Context, r *run, t *target) error {
	last := "its node has not appeared"
	err := r.poll(ctx, t, r.opts.Timeouts.Readiness, "node Ready", func(ctx context.Context) (bool, string, error) {
		nodes, err := r.nodes.list(ctx, r.opts.Cluster.Nodes)
		if err != nil {
			return false, "the API server does not answer: " + err.Error(), nil
		}
		n := findNode(nodes, t.facts)
		switch {
		case n == nil:
			return false, last, nil
		case n.MachineID != "" && n.MachineID != t.facts.MachineID:
			// A node object that an earlier machine left: the kubelet writes its own
			// machine-id when it registers.
			return false, fmt.Sprintf("node %s still is that of machine %s", n.Name, n.MachineID), nil
		case !n.Ready:
			return false, fmt.Sprintf("node %s is not Ready: %s", n.Name, n.ReadyReason), nil
		}
		t.node = n
		return true, "", nil
	})
	if err != nil {
		return err
	}
	return r.finishJoin(ctx, t)
}

// nodeList is one list of the nodes for all hosts that wait at the same time: a
// hundred of them ask the API server once a second, not a hundred times.
type nodeList struct {
	mu    sync.Mutex
	at    time.Time
	nodes []Node
}

// list returns the nodes as they were read within the last half second.
func (l *nodeList) list(ctx context.Context, from Nodes) ([]Node, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.at.IsZero() && time.Since(l.at) < 500*time.Millisecond {
		return l.nodes, nil
	}
	nodes, err := from.List(ctx)
	if err == nil {
		l.at, l.nodes = time.Now(), nodes
	}
	return nodes, err
}

// poll asks done once a second until it says yes, fails, or the time is up. A change
// of what is being waited for is an event; when the time is up the error says what was seen last.
// A stop ends it at once.
func (r *run) poll(ctx context.Context, t *target, limit time.Duration, what string, done func(context.Context) (bool, string, error)) error {
	return r.pollOn(ctx, t, limit, 0, what, done)
}

// pollOn is poll that a stop ends only after grace: for what is about to come by
// itself, and costs more to leave half done than to wait for.
func (r *run) pollOn(ctx context.Context, t *target, limit, grace time.Duration, what string, done func(context.Context) (bool, string, error)) error {
	ctx, cancel := r.waiting(ctx, grace)
	defer cancel()
	deadline := time.Now().Add(limit)
	last, seen := "", "nothing yet"
	for attempt := 1; ; attempt++ {
		ask, cancelAsk := context.WithDeadline(ctx, deadline)
		ok, now, err := done(ask)
		if ask.Err() == nil {
			seen = now // an answer that was cut off says nothing
		}
		cancelAsk()
		if err == nil && ok {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("waiting for %s: %w: last seen: %s", what, context.Cause(ctx), seen)
		}
		if err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		if !time.Now().Before(deadline) {
			return fmt.Errorf("%w: %s after %s: last seen: %s", ErrTimeout, what, limit, seen)
		}
		if seen != last {
			ref := t.ref()
			r.emit(Event{Kind: Progress, Host: &ref, Message: "waiting for " + what + ": " + seen, Attempt: attempt, Deadline: &deadline})
			last = seen
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(time.Second, time.Until(deadline))):
		}
	}
}

// labelChange is what is to be changed so that the node has the labels that the
// user declares and none that only we had put there.
func labelChange(t *target) map[string]*string {
	change := map[string]*string{}
	for k, v := range t.labels {
		if have, ok := t.node.Labels[k]; !ok || have != v {
			change[k] = &v
		}
	}
	for k := range strings.SplitSeq(ownedLabels(t.node), ",") {
		if _, ok := t.labels[k]; !ok && k != "" {
			change[k] = nil
		}
	}
	return change
}

func ownedLabels(n *Node) string { return n.Annotations[managedLabels] }

// reconcileLabels puts the labels that the user declared on the node and writes
// down that they are ours.
func reconcileLabels(ctx context.Context, r *run, t *target) error {
	owned := joinKeys(t.labels)
	patch := NodePatch{UID: t.node.UID, Labels: labelChange(t), Annotations: map[string]*string{managedLabels: &owned}}
	if owned == "" {
		patch.Annotations[managedLabels] = nil
	}
	if err := r.guard(ctx); err != nil {
		return err
	}
	if err := r.opts.Cluster.Nodes.Patch(ctx, t.node.Name, patch); err != nil {
		return fmt.Errorf("labelling node %s: %w", t.node.Name, err)
	}
	r.did(t, "labelled")
	return nil
}

// patchConfig makes the MkeConfig in the cluster list every target.
func patchConfig(ctx context.Context, r *run, on []*target) error {
	written, err := r.opts.Cluster.Config.AddHosts(ctx, specsOf(on), r.guard)
	for _, t := range on {
		for _, address := range written {
			if addressKey(address) == addressKey(t.spec.SSH.Address) {
				r.did(t, "registered in MkeConfig")
			}
		}
	}
	if err != nil {
		return fmt.Errorf("listing the hosts in MkeConfig: %w", err)
	}
	if len(written) == 0 {
		r.note("MkeConfig lists every host already: nothing was written")
	}
	return nil
}
