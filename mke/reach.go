package mke

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mkesdk/mkesdk/etcdverify"
	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/transport"
)

// reach connects to every target and to the helper. All that can't be reached
// is reported together, so that one look at the error is enough to mend it.
func reach(ctx context.Context, r *run, on []*target) error {
	config, err := r.opts.Cluster.Config.Get(ctx)
	if err != nil {
		return err
	}
	r.config = config
	var targets, helper error
	var wg sync.WaitGroup // a host that does not answer costs its time-out once, not once for each
	wg.Go(func() { helper = r.findHelper(ctx) })
	targets = each(func(ctx context.Context, r *run, t *target) (err error) {
		t.conn, err = r.connect(ctx, t.spec.SSH)
		return err
	})(ctx, r, on)
	wg.Wait()
	return errors.Join(targets, helper)
}

// connect dials a host and makes sure that root is at hand there. The
// connection is closed when the operation ends.
func (r *run) connect(ctx context.Context, h hosts.SSH) (transport.Conn, error) {
	conn, err := r.opts.Cluster.SSH.Dial(ctx, h)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.cleanup = append([]func(context.Context) error{func(context.Context) error {
		conn.Close() // nothing is lost by a connection that ends badly
		return nil
	}}, r.cleanup...)
	r.mu.Unlock()
	uid, err := transport.Output(ctx, conn, transport.Command{Args: []string{"id", "-u"}, Sudo: true, Effect: transport.EffectNone})
	if err != nil {
		return nil, err
	}
	if uid != "0" {
		return nil, fmt.Errorf("%s: sudo gave uid %q instead of root's", conn, uid)
	}
	return conn, nil
}

// findHelper takes the first control plane host, in the order of MkeConfig, that
// can be reached and whose etcd member votes and is healthy. A target is never
// the helper.
func (r *run) findHelper(ctx context.Context) error {
	inScope := map[string]bool{}
	for _, t := range r.targets {
		inScope[addressKey(t.spec.SSH.Address)] = true
	}
	var errs []error
	for _, c := range r.config.Hosts {
		if c.Role != hosts.ControllerWorker {
			continue
		}
		if inScope[addressKey(c.SSH.Address)] {
			errs = append(errs, fmt.Errorf("%s is a control plane host of this cluster and is among the hosts to be added: take it out of the list", c.SSH.Address))
			continue
		}
		err := r.tryHelper(ctx, c)
		if err == nil {
			r.note("helper controller: %s", r.helperRef)
			return nil
		}
		if errors.Is(err, ErrOtherCluster) {
			return err // the wrong cluster, not an unlucky candidate
		}
		errs = append(errs, fmt.Errorf("%s: %w", c.SSH.Address, err))
	}
	if len(errs) == 0 {
		return fmt.Errorf("%w: MkeConfig spec.hosts lists no %s host", ErrNoHelper, hosts.ControllerWorker)
	}
	return fmt.Errorf("%w: %w", ErrNoHelper, errors.Join(errs...))
}

// tryHelper makes c the helper if it is fit to be.
func (r *run) tryHelper(ctx context.Context, c hosts.Spec) error {
	conn, err := r.connect(ctx, c.SSH)
	if err != nil {
		return err
	}
	facts, err := hosts.Collect(ctx, conn, hosts.CollectOptions{DataDir: r.config.DataDir})
	if err != nil {
		return err
	}
	ref := HostRef{Address: c.SSH.Address, Node: facts.NodeName}
	ca := facts.CA.Fingerprint
	if ca == "" {
		return fmt.Errorf("no cluster CA in %s/pki/ca.crt: not a running controller", facts.DataDir)
	}
	trusted, err := hosts.Fingerprints(r.opts.Cluster.CA)
	if err != nil {
		return fmt.Errorf("the CA of the kubeconfig: %w", err)
	}
	if len(trusted) > 0 && !slices.Contains(trusted, ca) {
		return fmt.Errorf("%w: controller %s has the cluster CA %s, the kubeconfig trusts %v: is it the kubeconfig of this cluster?", ErrOtherCluster, ref, ca, trusted)
	}
	e, err := r.opts.Cluster.Etcd.Evidence(ctx, conn, facts.DataDir)
	if err != nil {
		return err
	}
	if err := etcdverify.HealthyVoter(e); err != nil {
		return err
	}
	r.helper, r.helperRef, r.helperFacts = conn, ref, facts
	r.ca, r.k0sVersion = ca, facts.K0s.Version
	return nil
}
