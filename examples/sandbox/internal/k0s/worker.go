package k0s

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/control"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/kubelet"
)

// envToken is the environment variable in which the real k0s also takes a join token.
const envToken = "K0S_TOKEN"

func (a *app) workerCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "worker", Args: cobra.MaximumNArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		return a.runWorker(cmd.Context(), args)
	}}
	a.debugFlags(cmd.PersistentFlags())
	a.pathFlags(cmd.Flags())
	a.workerFlags(cmd.Flags())
	return cmd
}

// runWorker is `k0s worker`: it runs until it is asked to end.
func (a *app) runWorker(ctx context.Context, args []string) error {
	a.log = newLogger(a.err, slog.LevelInfo)
	v, err := a.vars()
	if err != nil {
		return err
	}
	tokens := tokenSources(args, os.Getenv(envToken), a.p.tokenFile)
	if len(tokens) > 1 {
		return fmt.Errorf("only one of a join token as an argument, --token-file and %s can be given", envToken)
	}
	k, err := readKnobs(KnobDir)
	if err != nil {
		return err
	}
	if err := workerDirs(v); err != nil {
		return err
	}
	run, err := hold(v, nil)
	if err != nil {
		return err
	}
	defer a.release(run)
	o, err := a.kubelet(v, k)
	if err != nil {
		return err
	}
	if len(tokens) == 1 {
		o.Bootstrap = func() (*clientcmdapi.Config, error) {
			token, err := tokens[0]()
			if err != nil {
				return nil, err
			}
			return control.ParseWorkerToken(token)
		}
	}
	if err := kubelet.Bootstrap(ctx, o); err != nil {
		return fmt.Errorf("failed to bootstrap kubelet client configuration: %w", err)
	}
	if err := os.WriteFile(filepath.Join(v.DataDir, "worker-profile.yaml"), []byte("{}\n"), 0o644); err != nil {
		return err
	}
	st := a.newStatus(v, control.RoleWorker, true)
	return a.runNode(ctx, o, k, func(ctx context.Context) error {
		return serveStatus(ctx, v.StatusSocketPath, probed(st, v.KubeletAuthConfigPath))
	})
}

// runNode runs the kubelet and, once its node is Ready (or is never to be) and some time more has
// passed, what comes after it.
func (a *app) runNode(ctx context.Context, o kubelet.Options, k knobs, after func(context.Context) error) error {
	ready := make(chan struct{})
	if o.Knobs.NeverRegister {
		close(ready)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var first, second error
	wg.Go(func() {
		defer cancel()
		first = kubelet.Run(ctx, o, func() { close(ready) })
	})
	wg.Go(func() {
		select {
		case <-ctx.Done():
			return
		case <-ready:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(k.statusDelay):
		}
		if second = after(ctx); second != nil {
			a.log.Error("failed to start status server: " + second.Error())
		}
	})
	wg.Wait()
	return errors.Join(first, second)
}

// kubelet puts together what the kubelet of this host is to be.
func (a *app) kubelet(v control.Vars, k knobs) (kubelet.Options, error) {
	extra := extraArgs(a.p.kubeletExtraArgs)
	name := extra["--hostname-override"]
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			return kubelet.Options{}, fmt.Errorf("failed to determine node name: %w", err)
		}
		name = host
	}
	labels := pairs{}
	for p, v := range a.p.labels {
		labels[p] = v
	}
	if err := labels.Set(extra["--node-labels"]); err != nil {
		return kubelet.Options{}, fmt.Errorf("--node-labels: %w", err)
	}
	taints, err := parseTaints(a.p.taints)
	if err != nil {
		return kubelet.Options{}, err
	}
	return kubelet.Options{
		NodeName: control.NodeName(name), Kubeconfig: v.KubeletAuthConfigPath, RootDir: v.KubeletRootDir, Version: kubeletVersion,
		Labels: labels, Taints: taints, NodeIP: extra["--node-ip"], ExternalCloud: a.p.cloudProvider,
		Knobs: k.kubelet, Log: a.log,
	}, nil
}

// extraArgs splits the arguments that are handed to the kubelet.
func extraArgs(s string) map[string]string {
	out := map[string]string{}
	for _, arg := range strings.Fields(s) {
		k, v, _ := strings.Cut(arg, "=")
		out[k] = strings.Trim(v, `"'`)
	}
	return out
}

// workerDirs makes the directories of a worker with k0s's modes.
func workerDirs(v control.Vars) error {
	for _, d := range []struct {
		path string
		mode fs.FileMode
	}{{v.DataDir, 0o755}, {v.RunDir, 0o755}, {v.BinDir, 0o755}, {v.OCIBundleDir, 0o755}, {filepath.Join(v.DataDir, "containerd"), 0o700}} {
		if err := errors.Join(os.MkdirAll(d.path, d.mode), os.Chmod(d.path, d.mode)); err != nil {
			return err
		}
	}
	return containerdConfig()
}

// tokenSources are the places that hold a join token; more than one is a mistake.
func tokenSources(args []string, env, file string) []func() (string, error) {
	var out []func() (string, error)
	for _, literal := range append(args, env) {
		if literal != "" {
			out = append(out, func() (string, error) { return literal, nil })
		}
	}
	if file != "" {
		out = append(out, func() (string, error) {
			data, err := os.ReadFile(file)
			if errors.Is(err, fs.ErrNotExist) {
				return "", fmt.Errorf("token file %q not found", file)
			}
			if err != nil {
				return "", fmt.Errorf("failed to read token file: %w", err)
			}
			if len(data) == 0 {
				return "", fmt.Errorf("token file %q is empty", file)
			}
			return string(data), nil
		})
	}
	return out
}

func (a *app) release(r *running) {
	if err := r.release(); err != nil {
		a.log.Warn("Failed to cleanup runtime config", "error", err)
	}
}

// newStatus is what this k0s says of itself.
func (a *app) newStatus(v control.Vars, role string, workloads bool) status {
	return status{Version: Version, Pid: os.Getpid(), Role: role, Workloads: workloads, Args: a.args, K0sVars: v}
}

// probed adds to a status how the node's own connection to the API server does at the moment.
func probed(st status, kubeconfig string) func(context.Context) status {
	return func(ctx context.Context) status {
		now := st
		c, err := kubelet.Client(kubeconfig)
		if err == nil {
			err = c.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Error()
		}
		now.WorkerToAPIConnectionStatus = probe{Success: err == nil}
		if err != nil {
			now.WorkerToAPIConnectionStatus.Message = err.Error()
		}
		return now
	}
}
