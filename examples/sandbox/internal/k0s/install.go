package k0s

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/control"
)

var errNotRoot = errors.New("this command must be run as root")

func (a *app) installCommand() *cobra.Command {
	var force, start bool
	var env []string
	cmd := &cobra.Command{Use: "install", Args: cobra.NoArgs, RunE: showHelp}
	a.debugFlags(cmd.PersistentFlags())
	cmd.PersistentFlags().BoolVar(&force, "force", false, "")
	cmd.PersistentFlags().BoolVar(&start, "start", false, "")
	cmd.PersistentFlags().StringArrayVarP(&env, "env", "e", nil, "")
	for _, role := range []string{control.RoleController, control.RoleWorker} {
		sub := &cobra.Command{Use: role, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			if os.Geteuid() != 0 {
				return errNotRoot
			}
			return a.install(cmd, role, env, force, start)
		}}
		a.pathFlags(sub.Flags())
		a.workerFlags(sub.Flags())
		if role == control.RoleController {
			sub.Aliases = []string{"server"}
			a.controllerFlags(sub.Flags())
		}
		cmd.AddCommand(sub)
	}
	return cmd
}

func (a *app) install(cmd *cobra.Command, role string, env []string, force, start bool) error {
	ctx := cmd.Context()
	env, err := resolveEnv(env)
	if err != nil {
		return err
	}
	args, err := serviceArgs(cmd.Flags())
	if err != nil {
		return err
	}
	if role == control.RoleController {
		if err := a.ensureUsers(); err != nil {
			return err
		}
	}
	program, err := ownPath(a.args[0])
	if err != nil {
		return fmt.Errorf("failed to install %s service: %w", role, err)
	}
	s := serviceOf(role)
	if force {
		if err := s.uninstall(ctx); err != nil && !errors.Is(err, errNotInstalled) {
			a.log.Warn("failed to uninstall service: " + err.Error())
		}
	}
	if err := s.install(ctx, program, append([]string{role}, args...), env); err != nil {
		return fmt.Errorf("failed to install %s service: %w", role, err)
	}
	if start {
		if err := startInstalled(ctx, force); err != nil {
			return fmt.Errorf("failed to start %s service: %w", role, err)
		}
	}
	return nil
}

// ensureUsers makes the users of a controller.
func (a *app) ensureUsers() error {
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
	if err := conf.Spec.InstallConfig.Users.Ensure(v.DataDir); err != nil {
		return fmt.Errorf("failed to create controller users: %w", err)
	}
	return nil
}

// serviceArgs are the flags that were given, in the order of their names, as k0s writes them into
// the service: paths absolute, those of the installation itself left out.
func serviceArgs(f *pflag.FlagSet) ([]string, error) {
	var out []string
	var errs []error
	f.Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		switch f.Name {
		case "env", "force", "start":
			return
		case "data-dir", "kubelet-root-dir", "token-file", "config":
			abs, err := filepath.Abs(value)
			if err != nil {
				errs = append(errs, fmt.Errorf("failed to convert --%s=%s to an absolute path: %w", f.Name, value, err))
			}
			value = abs
		}
		switch f.Value.Type() {
		case "stringSlice", "stringToString":
			value = strings.Trim(value, "[]")
		}
		out = append(out, "--"+f.Name+"="+value)
	})
	return out, errors.Join(errs...)
}

// resolveEnv gives variables that were only named the value they have here.
func resolveEnv(in []string) ([]string, error) {
	out := make([]string, len(in))
	for i, e := range in {
		if strings.ContainsRune(e, 0) {
			return nil, errors.New("NUL byte in environment variable")
		}
		if out[i] = e; !strings.Contains(e, "=") {
			out[i] = e + "=" + os.Getenv(e)
		}
	}
	return out, nil
}

// ownPath is where the program lies that was called by this name.
func ownPath(name string) (string, error) {
	found, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	return filepath.Abs(found)
}

func (a *app) startCommand() *cobra.Command {
	return a.serviceCommand("start", func(ctx context.Context) error { return startInstalled(ctx, false) })
}

func (a *app) stopCommand() *cobra.Command {
	return a.serviceCommand("stop", func(ctx context.Context) error {
		s, state, err := installedService(ctx)
		if err != nil {
			return err
		}
		if state == stateStopped {
			return errors.New("already stopped")
		}
		return systemctl(ctx, "stop", s.unit())
	})
}

func (a *app) serviceCommand(name string, do func(context.Context) error) *cobra.Command {
	cmd := &cobra.Command{Use: name, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		if os.Geteuid() != 0 {
			return errNotRoot
		}
		return do(cmd.Context())
	}}
	a.debugFlags(cmd.PersistentFlags())
	return cmd
}

func startInstalled(ctx context.Context, force bool) error {
	s, state, err := installedService(ctx)
	if err != nil {
		return err
	}
	if state != stateRunning {
		return systemctl(ctx, "start", s.unit())
	}
	if !force {
		return errors.New("already running")
	}
	if err := systemctl(ctx, "restart", s.unit()); err != nil {
		return fmt.Errorf("failed to restart service: %w", err)
	}
	return nil
}
