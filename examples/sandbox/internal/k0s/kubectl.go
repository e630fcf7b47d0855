package k0s

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/control"
)

// kubectlCommand hands everything to kubectl, with the administrator's configuration of this
// controller unless KUBECONFIG says otherwise.
func (a *app) kubectlCommand() *cobra.Command {
	return &cobra.Command{Use: "kubectl", Aliases: []string{"kc"}, DisableFlagParsing: true, RunE: func(cmd *cobra.Command, args []string) error {
		v, err := a.vars()
		if err != nil {
			return err
		}
		env := os.Environ()
		if os.Getenv("KUBECONFIG") == "" {
			if _, err := os.Stat(v.AdminKubeConfigPath); err != nil {
				return fmt.Errorf("cannot stat k0s kubeconfig, is the server running?: %w", err)
			}
			env = append(env, "KUBECONFIG="+v.AdminKubeConfigPath)
		}
		c := exec.CommandContext(cmd.Context(), control.ToolPath("kubectl"), args...)
		c.Stdin, c.Stdout, c.Stderr, c.Env = a.stdin, a.out, a.err, env
		var exit *exec.ExitError
		if err := c.Run(); errors.As(err, &exit) {
			return exitCode(max(exit.ExitCode(), 1))
		} else if err != nil {
			return err
		}
		return nil
	}}
}
