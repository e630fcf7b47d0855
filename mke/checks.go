package mke

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mkesdk/mkesdk/etcdverify"
	"github.com/mkesdk/mkesdk/hosts"
)

// observeHosts gathers the facts of every target in one round trip each and
// decides which scenario it is in. One refusal refuses the whole operation: a
// part of what was asked is not what was asked.
func observeHosts(ctx context.Context, r *run, on []*target) error {
	if err := r.observeAll(ctx, on); err != nil {
		return err
	}
	if err := r.awaitStarting(ctx, on); err != nil {
		return err
	}
	nodes, err := r.opts.Cluster.Nodes.List(ctx)
	if err != nil {
		return err
	}
	if err := r.identities(on, nodes); err != nil {
		return err
	}
	return r.forEach(ctx, on, func(t *target) error { return refuse(r, t) })
}

// observeAll observes every target, within the time that facts may take.
func (r *run) observeAll(ctx context.Context, on []*target) error {
	ctx, cancel := context.WithTimeoutCause(ctx, r.opts.Timeouts.Facts, fmt.Errorf("%w: the facts of all hosts within %s", ErrTimeout, r.opts.Timeouts.Facts))
	defer cancel()
	nodes, err := r.opts.Cluster.Nodes.List(ctx)
	if err != nil {
		return err
	}
	return each(func(ctx context.Context, r *run, t *target) error {
		return r.observe(ctx, t, nodes)
	})(ctx, r, on)
}

// observe fills in what is seen of one target.
func (r *run) observe(ctx context.Context, t *target, nodes []Node) error {
	facts, err := hosts.Collect(ctx, t.conn, hosts.CollectOptions{DataDir: r.config.DataDir})
	if err != nil {
		return err
	}
	t.facts = facts
	t.labels, err = t.spec.Labels()
	if err != nil {
		return fmt.Errorf("%w: installFlags: %w", ErrInvalid, err)
	}
	t.node = findNode(nodes, facts)
	view := hosts.ClusterView{CAFingerprint: r.ca}
	if t.node != nil {
		node := t.node.view()
		view.Node = &node
		_, t.owed = t.node.Annotations[uncordonOwed]
	}
	t.state = hosts.Observe(facts, view)
	t.scenario = hosts.Match(hosts.Add, r.opts.Role, t.state)
	t.stuckAsRow4()
	return nil
}

// findNode returns the node of the host that facts describe: the one under its
// node name, else the one with its machine-id (a kubelet may register under
// another name), else nil.
func findNode(nodes []Node, facts hosts.Facts) *Node {
	for _, match := range []func(Node) bool{
		func(n Node) bool { return n.Name == facts.NodeName },
		func(n Node) bool { return n.MachineID != "" && n.MachineID == facts.MachineID },
	} {
		if i := slices.IndexFunc(nodes, match); i >= 0 {
			return &nodes[i]
		}
	}
	return nil
}

// refuse reports the scenario of a target and refuses what the matrix refuses.
func refuse(r *run, t *target) error {
	r.progress(t, "scenario %s, %s: %s", t.scenario.Row, t.scenario.Name, strings.ReplaceAll(t.scenario.Do, "**", ""))
	if t.scenario.Action != hosts.Refuse {
		return nil
	}
	err := &HostError{Scenario: t.scenario, Why: t.state.Why}
	if t.state.CA == hosts.OtherCluster {
		err.Cause = ErrOtherCluster
	}
	return err
}

// identities refuses two targets that are one host, and a target that shares its
// machine-id or address with a node that is not its own.
func (r *run) identities(on []*target, nodes []Node) error {
	var targets []hosts.Target
	for _, t := range on {
		targets = append(targets, hosts.Target{Host: t.ref().String(), Spec: t.spec, Facts: t.facts})
	}
	var known []hosts.Node
	for _, n := range nodes {
		known = append(known, n.view())
	}
	if found := hosts.CheckIdentities(targets, known); len(found) > 0 {
		return &PreflightError{Findings: found}
	}
	return nil
}

// view is the node as package hosts looks at it.
func (n Node) view() hosts.Node {
	return hosts.Node{Name: n.Name, Ready: n.Ready, Cordoned: n.Cordoned, MachineID: n.MachineID, BootID: n.BootID, Addresses: n.Addresses}
}

// checkFacts refuses hosts whose facts are not complete enough to go by.
func checkFacts(ctx context.Context, r *run, on []*target) error {
	return each(func(_ context.Context, r *run, t *target) error {
		missing := t.facts.Missing()
		if len(missing) > 0 {
			return fmt.Errorf("could not be learned of the host: %s", strings.Join(missing, ", "))
		}
		return nil
	})(ctx, r, on)
}

// preflight holds the versions of the cluster and every host that is about to be
// installed against what an installation needs. All that is wrong is reported at once.
func preflight(ctx context.Context, r *run, on []*target) error {
	errs := []error{r.checkControllerVersions(ctx)}
	found := hosts.CheckMKE("cluster", strings.TrimPrefix(r.config.Version, "v"), strings.TrimPrefix(r.opts.MKEVersion, "v"))
	for _, t := range on {
		name := t.ref().String()
		found = append(found, hosts.CheckK0s(name, t.facts, t.scenario.Action, r.k0sVersion)...)
		if !r.fresh(t) {
			continue
		}
		if _, err := t.installArgs(); err != nil {
			errs = append(errs, r.blame(t.ref(), fmt.Errorf("%w: %w", ErrInvalid, err)))
		}
		found = append(found, hosts.Check(name, t.facts, r.opts.Role, r.opts.Bounds, r.opts.SkipPreflight...)...)
	}
	failed := &PreflightError{}
	for _, f := range found {
		if f.Severity == hosts.Error {
			failed.Findings = append(failed.Findings, f)
			continue
		}
		r.warn(nil, "%s", f)
	}
	if len(failed.Findings) > 0 {
		errs = append(errs, failed)
	}
	return errors.Join(errs...)
}

// checkControllerVersions refuses a cluster whose controllers do not all run the
// helper's version of k0s: which one a new host is to get would be a guess. Of
// the other controllers only the kubelet's version is at hand; it is k0s's less
// the build.
func (r *run) checkControllerVersions(ctx context.Context) error {
	nodes, err := r.opts.Cluster.Nodes.List(ctx)
	if err != nil {
		return err
	}
	want, _, _ := strings.Cut(r.k0sVersion, "+")
	var errs []error
	for _, n := range nodes {
		if got, _, _ := strings.Cut(n.Kubelet, "+"); n.Controller && got != want {
			errs = append(errs, fmt.Errorf("%w: control plane node %s runs Kubernetes %s, the helper %s runs k0s %s: finish the upgrade first", ErrVersion, n.Name, n.Kubelet, r.helperRef, r.k0sVersion))
		}
	}
	return errors.Join(errs...)
}

// verifyRegistry makes sure that what is going to be pulled is there before
// anything is changed.
func verifyRegistry(ctx context.Context, r *run, on []*target) error {
	if s := r.config.ImageRegistry.Secret; s != "" {
		return fmt.Errorf("MkeConfig spec.registries.imageRegistry.credentialsSecretName is %q: this version reads registries anonymously only", s)
	}
	arches := map[string]bool{}
	for _, t := range on {
		arches[t.facts.Arch] = true
	}
	var errs []error
	for _, arch := range slices.Sorted(maps.Keys(arches)) {
		b, err := r.opts.Cluster.Artifacts.K0s(ctx, r.config.ImageRegistry, r.k0sVersion, arch)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		r.note("k0s %s for %s is there: %s, %d bytes", r.k0sVersion, arch, b.Digest, b.Size)
		r.binaries[arch] = b
	}
	return errors.Join(errs...)
}

// checkClusterState refuses a cluster that is being changed by somebody else, or
// of which a node out of scope is not Ready.
func checkClusterState(ctx context.Context, r *run, _ []*target) error {
	busy, err := r.opts.Cluster.Config.Busy(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, what := range busy {
		errs = append(errs, fmt.Errorf("%w: %s", ErrNotStable, what))
	}
	nodes, err := r.opts.Cluster.Nodes.List(ctx)
	if err != nil {
		return err
	}
	moving, err := nodesInTransition(ctx, r.opts.Cluster.Leases)
	if err != nil {
		return fmt.Errorf("listing operation locks: %w", err)
	}
	for _, n := range nodes {
		if n.Ready || n.Deleting || moving[n.Name] || r.inScope(n.Name) {
			continue
		}
		errs = append(errs, fmt.Errorf("%w: node %s is not Ready: %s", ErrNotStable, n.Name, n.ReadyReason))
	}
	return errors.Join(errs...)
}

// inScope reports whether node is that of a target.
func (r *run) inScope(node string) bool {
	return slices.ContainsFunc(r.targets, func(t *target) bool {
		return t.facts.NodeName == node || t.node != nil && t.node.Name == node
	})
}

// nodesInTransition are those that another operation holds the lock of.
func nodesInTransition(ctx context.Context, leases Leases) (map[string]bool, error) {
	locks, err := Locks(ctx, leases)
	if err != nil {
		return nil, err
	}
	moving := map[string]bool{}
	for _, l := range locks {
		if node, ok := strings.CutPrefix(l.Lease, nodeLeasePrefix); ok && !l.Stale {
			moving[node] = true
		}
	}
	return moving, nil
}

// checkEtcdState asks the helper's etcd member whether etcd is operational.
func checkEtcdState(ctx context.Context, r *run, _ []*target) error {
	e, err := r.opts.Cluster.Etcd.Evidence(ctx, r.helper, r.config.DataDir)
	if err != nil {
		return err
	}
	for _, f := range etcdverify.Warnings(e) {
		r.warn(nil, "%v", f)
	}
	if err := etcdverify.Operational(e); err != nil {
		return err
	}
	var names []string
	for _, m := range e.Members {
		names = append(names, m.Name)
	}
	r.note("etcd is operational, asked through %s; its members: %s", r.helperRef, strings.Join(names, ", "))
	return nil
}
