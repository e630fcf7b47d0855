package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/host"
)

// K0sPath is where k0s is on a host.
const K0sPath = "/usr/local/bin/k0s"

const (
	configPath = "/etc/k0s/k0s.yaml"
	adminPath  = "/var/lib/k0s/pki/admin.conf"
)

// Part is something that lives beside the cluster, in the supervisor: what plays MKE, the
// registry.
type Part struct {
	Name string
	// Start is called once the API server answers. It sets the part up and returns; what goes on
	// afterwards ends with ctx.
	Start func(ctx context.Context, p Params) error
}

// Params is what a part is told.
type Params struct {
	Dir        string    // state directory
	Kubeconfig []byte    // the administrator's, with an address that the operator's side reaches
	K0s        string    // the k0s binary of the sandbox, a file of this machine that does not change
	Plans      []Plan    // the sandbox's hosts
	Log        io.Writer // takes what is said after Start has returned
}

// k0sConfig is the configuration that the first controller is installed with.
func k0sConfig(address string) []byte {
	return fmt.Appendf(nil, `apiVersion: k0s.k0sproject.io/v1beta1
kind: ClusterConfig
metadata:
  name: k0s
spec:
  api:
    address: %[1]s
    sans:
    - %[1]s
  storage:
    type: etcd
    etcd:
      peerAddress: %[1]s
  telemetry:
    enabled: false
`, address)
}

// assemble makes the cluster: k0s on the controller, and the parts beside it.
func (s *supervisor) assemble(ctx context.Context, parts []Part) error {
	began := time.Now()
	plan, m := s.find("c1")
	if m == nil {
		return errors.New("no controller")
	}
	if err := m.Install(s.cfg.Programs[host.Program], K0sPath); err != nil {
		return err
	}
	script := "umask 077 && mkdir -p /etc/k0s && cat >" + configPath
	for _, step := range []struct {
		stdin []byte
		args  []string
	}{
		{k0sConfig(plan.Address), []string{"/bin/sh", "-c", script}},
		{nil, []string{K0sPath, "install", "controller", "--enable-worker", "--config", configPath}},
		{nil, []string{K0sPath, "start"}},
	} {
		if err := runOn(ctx, m, step.stdin, step.args...); err != nil {
			return err
		}
	}
	kubeconfig, err := awaitAPI(ctx, m, plan)
	if err != nil {
		return err
	}
	if err := writeFile(s.path(KubeconfigFile), kubeconfig, 0o600); err != nil {
		return err
	}
	s.say("the API server answers, %.1f s after k0s was started", time.Since(began).Seconds())
	artifact, err := s.ownK0s()
	if err != nil {
		return err
	}
	params := Params{Dir: s.cfg.Dir, Kubeconfig: kubeconfig, K0s: artifact, Plans: s.plans, Log: os.Stderr}
	var g errgroup.Group
	for _, p := range parts {
		g.Go(func() error {
			if err := p.Start(ctx, params); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
			return nil
		})
	}
	g.Go(func() error { return awaitNode(ctx, kubeconfig, plan.Name) })
	if err := g.Wait(); err != nil {
		return err
	}
	s.say("the cluster is ready, after %.1f s in all", time.Since(s.started).Seconds())
	return nil
}

// ownK0s gives the binary a second name in the state directory: in the cache it may give way to a
// newer one while the sandbox runs.
func (s *supervisor) ownK0s() (string, error) {
	own := s.path(k0sFile)
	if err := os.Remove(own); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := os.Link(s.cfg.Programs[host.Program], own); err == nil {
		return own, nil
	}
	// Another file system.
	return own, copyFile(s.cfg.Programs[host.Program], own)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// runOn runs a command on a host and is satisfied with nothing but status 0.
func runOn(ctx context.Context, m *host.Machine, stdin []byte, args ...string) error {
	conn, err := m.Conn(ctx)
	if err != nil {
		return err
	}
	out, code, err := output(ctx, conn, stdin, args)
	if err != nil {
		return fmt.Errorf("host %s: %w", m.Name(), err)
	}
	if code != 0 {
		return fmt.Errorf("host %s: %s: exit status %d: %s", m.Name(), args, code, out)
	}
	return nil
}
