package k0s

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/control"
)

func (a *app) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "token", Args: cobra.NoArgs, RunE: showHelp}
	cmd.AddCommand(a.tokenCreate(), a.tokenList(), a.tokenInvalidate(),
		&cobra.Command{Use: "pre-shared", DisableFlagParsing: true, RunE: notPlayed})
	return cmd
}

func checkRole(role string) error {
	if role != control.RoleController && role != control.RoleWorker {
		return fmt.Errorf("unsupported role %q; supported roles are %q and %q", role, control.RoleController, control.RoleWorker)
	}
	return nil
}

func (a *app) tokenCreate() *cobra.Command {
	var role, expiry string
	var wait bool
	cmd := &cobra.Command{Use: "create", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		if err := checkRole(role); err != nil {
			return err
		}
		life, err := time.ParseDuration(expiry)
		if err != nil {
			return err
		}
		token, err := a.createToken(cmd, role, life)
		for tries := 1; err != nil && wait && tries < 120; tries++ {
			select {
			case <-cmd.Context().Done():
				return err
			case <-time.After(time.Second):
			}
			token, err = a.createToken(cmd, role, life)
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(a.out, token)
		return nil
	}}
	a.pathFlags(cmd.Flags())
	cmd.Flags().StringVar(&expiry, "expiry", "0s", "")
	cmd.Flags().StringVar(&role, "role", control.RoleWorker, "")
	cmd.Flags().BoolVar(&wait, "wait", false, "")
	return cmd
}

func (a *app) createToken(cmd *cobra.Command, role string, life time.Duration) (string, error) {
	v, err := a.vars()
	if err != nil {
		return "", err
	}
	conf, err := control.LoadConfig(v.StartupConfigPath)
	if err != nil {
		return "", err
	}
	st, err := a.readStatus(cmd.Context())
	if err != nil {
		return "", fmt.Errorf("failed to get k0s status: %w", err)
	}
	if st.SingleNode {
		return "", errors.New("refusing to create token: cannot join into a single node cluster")
	}
	if err := control.ReadableCA(v); err != nil {
		return "", err
	}
	c, err := admin(v)
	if err != nil {
		return "", err
	}
	return control.CreateToken(cmd.Context(), c, v, conf.Spec, role, life)
}

func (a *app) tokenList() *cobra.Command {
	var role string
	cmd := &cobra.Command{Use: "list", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		if err := checkRole(role); err != nil {
			return err
		}
		c, err := a.admin()
		if err != nil {
			return err
		}
		tokens, err := control.ListTokens(cmd.Context(), c)
		if err != nil {
			return err
		}
		if len(tokens) == 0 {
			fmt.Fprintln(a.out, "No k0s join tokens found")
			return nil
		}
		w := tabwriter.NewWriter(a.out, 6, 4, 3, ' ', 0)
		fmt.Fprint(w, "ID\tROLE\tEXPIRES AT\n")
		for _, t := range tokens {
			if t.Role == role {
				fmt.Fprintf(w, "%s\t%s\t%s\n", t.ID, t.Role, t.Expiry)
			}
		}
		return w.Flush()
	}}
	a.pathFlags(cmd.Flags())
	cmd.Flags().StringVar(&role, "role", "", "")
	return cmd
}

func (a *app) tokenInvalidate() *cobra.Command {
	cmd := &cobra.Command{Use: "invalidate", Args: cobra.MinimumNArgs(1), RunE: func(cmd *cobra.Command, ids []string) error {
		c, err := a.admin()
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := control.InvalidateToken(cmd.Context(), c, id); err != nil {
				return err
			}
			fmt.Fprintf(a.out, "token %s deleted successfully\n", id)
		}
		return nil
	}}
	a.pathFlags(cmd.Flags())
	return cmd
}

// admin is a connection to the API server of this controller.
func (a *app) admin() (kubernetes.Interface, error) {
	v, err := a.vars()
	if err != nil {
		return nil, err
	}
	return admin(v)
}

func admin(v control.Vars) (kubernetes.Interface, error) {
	conf, err := control.AdminConfig(v)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(conf)
}
