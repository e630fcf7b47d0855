package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/cluster"
)

// upOptions are the flags of up.
type upOptions struct {
	spare      int
	foreground bool
	bastion    bool
	ssh        string
	hostsOnly  bool
}

func upCommand(name *string) *cobra.Command {
	var o upOptions
	cmd := &cobra.Command{
		Use: "up", Short: "Start a sandbox: one controller, spare hosts, a bastion", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return up(cmd, *name, o) },
	}
	cmd.Flags().IntVar(&o.spare, "spare", 3, "hosts that can be added, besides the one behind the bastion")
	cmd.Flags().BoolVar(&o.bastion, "bastion", true, "a bastion, and h4 behind it")
	cmd.Flags().BoolVar(&o.foreground, "foreground", false, "stay; Ctrl-C is down")
	cmd.Flags().StringVar(&o.ssh, "ssh", os.Getenv("MKESDK_SANDBOX_SSH"),
		"SSH server of the hosts: openssh or builtin (default MKESDK_SANDBOX_SSH, else openssh where it is installed)")
	cmd.Flags().BoolVar(&o.hostsOnly, "hosts-only", false, "hosts, and no cluster on them")
	return cmd
}

func up(cmd *cobra.Command, name string, o upOptions) error {
	ctx := cmd.Context()
	if err := cluster.Fit(); err != nil {
		return err
	}
	dir, err := cluster.StateDir(name)
	if err != nil {
		return err
	}
	if c, err := cluster.Open(ctx, dir); err == nil {
		st, err := c.Status(ctx)
		if err != nil {
			return err
		}
		say("a sandbox is running already:")
		printStatus(cmd, st)
		return nil
	} else if !errors.Is(err, cluster.ErrNotRunning) {
		return err
	}
	b, err := builder()
	if err != nil {
		return err
	}
	programs, err := b.Programs(ctx)
	if err != nil {
		return err
	}
	s, err := cluster.Up(ctx, cluster.Config{
		Dir: dir, Programs: programs, Controllers: 1, Spare: o.spare, Bastion: o.bastion, SSH: o.ssh, HostsOnly: o.hostsOnly,
	}, say)
	if err != nil {
		return err
	}
	st, err := s.Status(ctx)
	if err != nil {
		s.Close()
		return err
	}
	if !o.foreground {
		// Before anything is printed: a reader that goes away early is no reason to end.
		if err := s.Detach(ctx); err != nil {
			s.Close()
			return err
		}
	}
	printStatus(cmd, st)
	printNext(cmd.OutOrStdout(), dir)
	if !o.foreground {
		return nil
	}
	say("Ctrl-C ends it")
	select {
	case <-ctx.Done():
		s.Close()
		say("down; nothing of it is left")
		return nil
	case <-s.Ended():
		return fmt.Errorf("the sandbox has ended; its log is %s", filepath.Join(dir, cluster.LogFile))
	}
}

func printNext(out io.Writer, dir string) {
	fmt.Fprintf(out, `
hosts.yaml   %s
kubeconfig   %s

Next, in examples/sandbox:
  go run . exec -- kubectl get nodes
  go run . exec -- mkectl node add --hosts-path hosts.yaml
  go run . ssh c1
  go run . down
`, filepath.Join(dir, cluster.HostsFile), filepath.Join(dir, cluster.KubeconfigFile))
}
