package k0s

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/control"
)

func (a *app) resetCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "reset", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		if os.Geteuid() != 0 {
			return errNotRoot
		}
		return a.reset(cmd.Context())
	}}
	a.debugFlags(cmd.PersistentFlags())
	a.pathFlags(cmd.Flags())
	a.configFlag(cmd.Flags())
	cmd.Flags().String("cri-socket", "", "")
	cmd.Flags().StringVar(&a.p.kubeletRootDir, "kubelet-root-dir", "", "")
	return cmd
}

// reset removes what k0s made on the host, in k0s's order, and goes on after a step that failed.
// It keeps /etc/k0s: the configuration, the join token, and what containerd was configured with.
func (a *app) reset(ctx context.Context) error {
	v, err := a.vars()
	if err != nil {
		return err
	}
	if busy, err := held(v); err != nil {
		return err
	} else if busy {
		return fmt.Errorf("%w, please stop k0s before reset", errStillRunning)
	}
	conf, err := control.LoadConfig(v.StartupConfigPath)
	if err != nil {
		return err
	}
	var errs []error
	for _, step := range []func() error{
		func() error { return a.resetContainers(v) },
		func() error {
			if err := conf.Spec.InstallConfig.Users.Delete(); err != nil {
				a.log.Warn("failed to delete controller users: " + err.Error())
			}
			return nil
		},
		func() error { return resetServices(ctx) },
		func() error { return resetDirectories(v) },
		resetCNI,
	} {
		errs = append(errs, step())
	}
	a.log.Warn("To ensure a full reset, a node reboot is recommended.")
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("errors occurred during clean-up: %w", err)
	}
	return nil
}

// resetContainers stands for the containerd that the real k0s starts to remove containers, which
// leaves its configuration behind. A host on which k0s never ran has none to start.
func (a *app) resetContainers(v control.Vars) error {
	if _, err := os.Stat(v.BinDir); err != nil {
		path := filepath.Join(v.BinDir, "containerd")
		a.log.Warn("Failed to initialize containerd, skipping container cleanup", "error",
			fmt.Sprintf("no payload attached, stat %s: no such file or directory, exec: \"containerd\": executable file not found in $PATH", path))
		return nil
	}
	return containerdConfig()
}

const (
	containerdFile = "/etc/k0s/containerd.toml"
	containerdDir  = "/etc/k0s/containerd.d"
)

// containerdConfig makes the files that k0s keeps for its containerd, unless they are there.
func containerdConfig() error {
	if err := os.MkdirAll(containerdDir, 0o755); err != nil {
		return err
	}
	if _, err := os.Stat(containerdFile); err == nil {
		return nil
	}
	return os.WriteFile(containerdFile, []byte("# k0s_managed=true\nversion = 3\nimports = [\""+containerdDir+"/*.toml\"]\n"), 0o644)
}

// resetServices removes the first of the two services that is there.
func resetServices(ctx context.Context) error {
	for _, role := range []string{"controller", "worker"} {
		err := serviceOf(role).uninstall(ctx)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errNotInstalled) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// resetDirectories unmounts what is mounted below the directories, last first, and removes them. A
// data directory that is a mount itself is emptied.
func resetDirectories(v control.Vars) error {
	mounts, err := mountPoints()
	if err != nil {
		return err
	}
	slices.Reverse(mounts)
	mounted := false
	for _, m := range mounts {
		if m == v.DataDir {
			mounted = true
			continue
		}
		if !under(m, v.KubeletRootDir) && !under(m, v.DataDir) {
			continue
		}
		if err := unix.Unmount(m, 0); err != nil {
			if err := unix.Unmount(m, unix.MNT_DETACH); err != nil {
				return fmt.Errorf("failed unmount %v", m)
			}
		}
	}
	if err := os.RemoveAll(v.KubeletRootDir); err != nil {
		return fmt.Errorf("failed to delete the kubelet root directory: %w", err)
	}
	if err := os.RemoveAll(v.DataDir); err != nil {
		var path *fs.PathError
		if !mounted || !errors.As(err, &path) || path.Path != v.DataDir {
			return fmt.Errorf("failed to delete the data directory: %w", err)
		}
	}
	if err := os.RemoveAll(v.RunDir); err != nil {
		return fmt.Errorf("failed to delete %s: %w", v.RunDir, err)
	}
	return nil
}

// resetCNI removes the network configurations that k0s's own network providers write.
func resetCNI() error {
	var errs []error
	for _, name := range []string{"10-calico.conflist", "calico-kubeconfig", "10-kuberouter.conflist"} {
		if err := os.Remove(filepath.Join("/etc/cni/net.d", name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func mountPoints() ([]string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var out []string
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 4 {
			out = append(out, unescape.Replace(f[4]))
		}
	}
	return out, nil
}

func under(path, base string) bool {
	rel, err := filepath.Rel(base, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}
