package mke

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/transport"
)

// tokenFile is where a host's join token is while it joins. A service that was
// installed before may name another place, hosts.K0s.TokenFile.
const tokenFile = "/etc/k0s/k0stoken"

// joinGrace is how long a host that was begun with may still take to get its own kubeconfig after a
// stop was asked for: it comes in seconds, and its token can then be taken away.
const joinGrace = 30 * time.Second

// tokenExpiry bounds the life of a join token that could not be invalidated.
const tokenExpiry = "15m"

// bootstrapWorker installs k0s as a worker and starts it.
func bootstrapWorker(ctx context.Context, r *run, t *target) error {
	if err := r.oweUncordon(ctx, t); err != nil {
		return err
	}
	if t.scenario.Action == hosts.ResetInstall {
		if err := r.resetFirst(ctx, t); err != nil {
			return err
		}
	}
	if err := r.guard(ctx); err != nil {
		return err
	}
	args, err := t.installArgs()
	if err != nil {
		return err
	}
	return r.withToken(ctx, t, tokenFile, func() error {
		if err := t.sudo(ctx, args...); err != nil {
			return fmt.Errorf("installing the worker service: %w", err)
		}
		if err := r.start(ctx, t); err != nil {
			return err
		}
		r.did(t, "installed")
		t.joined = true
		return nil
	})
}

// oweUncordon writes on a stale, cordoned node that it is to be un-cordoned once
// its host is back. A later run reads it if this one is killed.
func (r *run) oweUncordon(ctx context.Context, t *target) error {
	if t.node == nil || !t.node.Cordoned || t.owed {
		return nil
	}
	if err := r.guard(ctx); err != nil {
		return err
	}
	since := time.Now().UTC().Format(time.RFC3339)
	patch := NodePatch{UID: t.node.UID, Annotations: map[string]*string{uncordonOwed: &since}}
	if err := r.opts.Cluster.Nodes.Patch(ctx, t.node.Name, patch); err != nil {
		return fmt.Errorf("noting on node %s that it is to be un-cordoned: %w", t.node.Name, err)
	}
	t.owed = true
	return nil
}

// resetFirst takes away what an interrupted installation or reset has left.
func (r *run) resetFirst(ctx context.Context, t *target) error {
	if err := r.guard(ctx); err != nil {
		return err
	}
	// Not running, or not installed, is what is wanted here.
	err := t.sudo(ctx, t.k0s(), "stop")
	if _, ran := errors.AsType[*transport.ExitError](err); err != nil && !ran {
		return err
	}
	if err := t.sudo(ctx, t.k0s(), "reset", "--data-dir", t.dataDir(), "--kubelet-root-dir", t.kubeletRoot()); err != nil {
		return fmt.Errorf("resetting what was left on the host: %w: reboot the host, then run the operation again", err)
	}
	facts, err := hosts.Collect(ctx, t.conn, hosts.CollectOptions{DataDir: r.config.DataDir})
	if err != nil {
		return err
	}
	if left := facts.Leftovers.Found(); len(left) > 0 {
		return fmt.Errorf("k0s reset left %v: reboot the host, then run the operation again", left)
	}
	r.did(t, "reset")
	return nil
}

// installArgs is the command that installs the worker service; own are further flags of
// ours. It is an error if the host's flags collide with them.
func (t *target) installArgs(own ...string) ([]string, error) {
	own = append([]string{"--token-file=" + tokenFile, "--data-dir=" + t.dataDir()}, own...)
	ip, err := hosts.PrivateAddress(t.spec, t.facts)
	if err != nil {
		return nil, err
	}
	if ip.IsValid() {
		own = append(own, "--kubelet-extra-args=--node-ip="+ip.String())
	}
	args, err := hosts.InstallArgs(t.spec, own...)
	return append([]string{t.k0s(), "install", "worker"}, args...), err
}

// dataDir is k0s's data directory on the host.
func (t *target) dataDir() string { return t.facts.DataDir }

func (t *target) kubeletRoot() string {
	if t.facts.KubeletRoot != "" {
		return t.facts.KubeletRoot
	}
	return path.Join(t.dataDir(), "kubelet")
}

// restartService makes a worker register that is installed but is stopped, has failed,
// or runs and never did.
func restartService(ctx context.Context, r *run, t *target) error {
	kubeconf, err := t.holds(ctx, "test", "-s", path.Join(t.dataDir(), "kubelet.conf"))
	if err != nil {
		return err
	}
	restart := func() error {
		if err := r.guard(ctx); err != nil {
			return err
		}
		if t.scenario.Action == hosts.Restart {
			if err := t.sudo(ctx, t.k0s(), "stop"); err != nil {
				return fmt.Errorf("stopping the worker service: %w", err)
			}
		}
		if err := r.start(ctx, t); err != nil {
			return err
		}
		r.did(t, "service restarted")
		t.joined = true
		return nil
	}
	if kubeconf {
		return restart()
	}
	r.progress(t, "it has no kubelet.conf yet: it gets a new join token")
	return r.withToken(ctx, t, t.facts.K0s.TokenFile, restart)
}

// start starts the worker service. A unit that has failed is not started before its
// failure is acknowledged, and systemd remembers the failure past a reset of k0s. Where there is none
// to acknowledge systemctl says so, which is no error here.
func (r *run) start(ctx context.Context, t *target) error {
	if t.facts.Init == hosts.Systemd {
		err := t.sudo(ctx, "systemctl", "reset-failed", "k0sworker.service")
		if _, ran := errors.AsType[*transport.ExitError](err); err != nil && !ran {
			return err
		}
	}
	if err := t.sudo(ctx, t.k0s(), "start"); err != nil {
		return fmt.Errorf("starting the worker service: %w", err)
	}
	return nil
}

// reinstallForCloud installs the service again with the flags of an external
// cloud provider.
func reinstallForCloud(ctx context.Context, r *run, t *target) error {
	if err := r.guard(ctx); err != nil {
		return err
	}
	args, err := t.installArgs("--enable-cloud-provider")
	if err != nil {
		return err
	}
	args = append(args, "--force")
	for _, step := range [][]string{{t.k0s(), "stop"}, args, {t.k0s(), "start"}} {
		if err := t.sudo(ctx, step...); err != nil {
			return fmt.Errorf("reinstalling for the cloud provider: %w", err)
		}
	}
	r.did(t, "reinstalled for the cloud provider")
	return nil
}

// finishJoin takes away the join token that a host no longer needs: it has its
// kubelet.conf, and a restart reads only that. It does nothing to a host without one.
func (r *run) finishJoin(ctx context.Context, t *target) error {
	if t.facts.K0s.TokenLeft != hosts.Yes || t.tokenGone || t.facts.K0s.TokenFile != tokenFile {
		return nil // or it is at a place of somebody else's choice, and may be meant for more than this host
	}
	kubeconf, err := t.holds(ctx, "test", "-s", path.Join(t.dataDir(), "kubelet.conf"))
	if err != nil || !kubeconf {
		return err
	}
	if err := r.guard(ctx); err != nil {
		return err
	}
	token, err := transport.ReadFile(ctx, t.conn, tokenFile)
	if err != nil {
		return fmt.Errorf("reading the left-over join token: %w", err)
	}
	if id, err := tokenID(strings.TrimSpace(string(token))); err == nil {
		// One that has expired, or is of another making, is not there to be invalidated.
		err := r.invalidate(ctx, id)
		if _, ran := errors.AsType[*transport.ExitError](err); err != nil && !ran {
			return fmt.Errorf("invalidating the left-over join token %s: %w", id, err)
		}
	}
	if err := t.sudo(ctx, "rm", "-f", tokenFile); err != nil {
		return fmt.Errorf("deleting the join token: %w", err)
	}
	r.did(t, "left-over join token deleted")
	return nil
}
