package mke

import (
	"context"
	"errors"
	"time"

	"github.com/mkesdk/mkesdk/hosts"
)

// bootstrapTime is how long a worker without a kubeconfig of its own may be on its way up before it counts as
// stuck. One whose join token is good gets there in seconds.
const bootstrapTime = time.Minute

// starting reports whether k0s is on its way up on the host: its service is active, and it does
// not answer.
func (t *target) starting() bool {
	return t.scenario.Action == hosts.Wait && t.state.Answers != hosts.Yes
}

// awaitStarting waits for hosts whose k0s is on its way up to answer: only then can
// it be told which scenario they are in. One that has no kubeconfig of its own and does not come up
// in time waits for nothing, as its join token is good no more: it is restarted with a new one, as
// if it ran and had never registered.
func (r *run) awaitStarting(ctx context.Context, on []*target) error {
	return r.forEach(ctx, on, func(t *target) error {
		if !t.starting() {
			return nil
		}
		limit := r.opts.Timeouts.Readiness
		if t.state.KubeletConf == hosts.No {
			limit = min(limit, bootstrapTime)
		}
		err := r.poll(ctx, t, limit, "k0s to answer", func(ctx context.Context) (bool, string, error) {
			nodes, err := r.opts.Cluster.Nodes.List(ctx)
			if err == nil {
				err = r.observe(ctx, t, nodes)
			}
			if err != nil {
				return false, err.Error(), nil
			}
			return !t.starting(), "its service is active, and k0s status does not answer", nil
		})
		if errors.Is(err, ErrTimeout) && t.starting() && t.state.KubeletConf == hosts.No {
			t.stuck = true
			t.stuckAsRow4()
			return nil
		}
		return err
	})
}

// stuckAsRow4 makes a host that was found stuck on its way up one whose service is to be restarted.
func (t *target) stuckAsRow4() {
	if t.stuck && t.starting() {
		t.scenario.Action = hosts.Restart
		t.scenario.Do = "it is stuck on its way up without a kubeconfig of its own: restart the service with a new token"
	}
}
