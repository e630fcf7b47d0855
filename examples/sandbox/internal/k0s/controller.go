package k0s

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/control"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/kubelet"
)

// controlPlaneTaint keeps workloads off the node of a controller.
var controlPlaneTaint = corev1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}

// ownTokenLife bounds the token by which a controller's own node joins.
const ownTokenLife = 10 * time.Minute

func (a *app) controllerCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "controller", Aliases: []string{"server"}, Args: cobra.MaximumNArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		if err := a.refuse(cmd, "single", "init-only", "enable-dynamic-config"); err != nil {
			return err
		}
		return a.runController(cmd.Context(), args)
	}}
	a.debugFlags(cmd.PersistentFlags())
	a.pathFlags(cmd.Flags())
	a.workerFlags(cmd.Flags())
	a.controllerFlags(cmd.Flags())
	return cmd
}

// runController is `k0s controller`: it runs until it is asked to end.
func (a *app) runController(ctx context.Context, args []string) error {
	a.log = newLogger(a.err, slog.LevelInfo)
	v, err := a.vars()
	if err != nil {
		return err
	}
	conf, err := control.LoadConfig(v.StartupConfigPath)
	if err != nil {
		return fmt.Errorf("failed to load node config: %w", err)
	}
	if err := conf.Spec.Validate(); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(v.EtcdDataDir, "member", "snap", "db")); err != nil && len(tokenSources(args, os.Getenv(envToken), a.p.tokenFile)) > 0 {
		return errors.New("joining a controller to a cluster is not part of the stand-in")
	}
	k, err := readKnobs(KnobDir)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(v.RunDir, 0o755); err != nil {
		return err
	}
	run, err := hold(v, conf.JSON)
	if err != nil {
		return err
	}
	defer a.release(run)
	a.log.Info("using api address: " + conf.Spec.API.Address)
	return control.Run(ctx, control.Options{
		Vars: v, Config: conf, Hostname: host, Version: Version, Log: a.log, Disabled: set(a.p.disable),
		Ready: func(ctx context.Context) { a.afterAPI(ctx, v, conf, k) },
	})
}

// afterAPI is what a controller does once its API server answers: it says so on its socket, and is
// a worker as well if it is to be one.
func (a *app) afterAPI(ctx context.Context, v control.Vars, conf control.Config, k knobs) {
	st := a.newStatus(v, control.RoleController, a.p.enableWorker)
	st.ClusterConfig = conf.JSON
	now := func(context.Context) status { return st }
	if a.p.enableWorker {
		now = probed(st, v.KubeletAuthConfigPath)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		if err := serveStatus(ctx, v.StatusSocketPath, now); err != nil {
			a.log.Error("failed to start status server: " + err.Error())
		}
	})
	if !a.p.enableWorker {
		return
	}
	if err := a.ownNode(ctx, v, conf, k); err != nil && ctx.Err() == nil {
		a.log.Error("failed to start worker components: " + err.Error())
	}
}

// ownNode runs the worker part of a controller.
func (a *app) ownNode(ctx context.Context, v control.Vars, conf control.Config, k knobs) error {
	if err := workerDirs(v); err != nil {
		return err
	}
	o, err := a.kubelet(v, k)
	if err != nil {
		return err
	}
	o.Labels[control.LabelRole] = control.RoleControlPlane
	if !a.p.noTaints {
		o.Taints = append(o.Taints, controlPlaneTaint)
	}
	o.Bootstrap = func() (*clientcmdapi.Config, error) {
		c, err := admin(v)
		if err != nil {
			return nil, err
		}
		// A new cluster lacks the namespace for it at first.
		for {
			token, err := control.CreateToken(ctx, c, v, conf.Spec, control.RoleWorker, ownTokenLife)
			if err == nil {
				return control.ParseWorkerToken(token)
			}
			select {
			case <-ctx.Done():
				return nil, err
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
	if err := kubelet.Bootstrap(ctx, o); err != nil {
		return err
	}
	return kubelet.Run(ctx, o, func() {})
}

func set(names []string) map[string]bool {
	out := map[string]bool{}
	for _, n := range names {
		out[n] = true
	}
	return out
}
