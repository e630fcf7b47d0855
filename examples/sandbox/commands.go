package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/cluster"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/host"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/initd"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/tools"
)

const longHelp = `sandbox makes, on this machine, a cluster that the SDK cannot tell from a real one in what matters:
a controller with a real etcd and a real Kubernetes API server, spare hosts to add, and a bastion
with a host behind it, each reached over real SSH. It takes root, Linux and Go.

  go run . up                                          one controller, spare hosts; says what to try
  go run . exec -- mkectl node add --hosts-path hosts.yaml
  go run . ssh h3                                      look around
  go run . break h3 kill                               and start, reboot, cut, heal
  go run . down                                        nothing is left`

// newCommand is the command line for people.
func newCommand() *cobra.Command {
	var name string
	root := &cobra.Command{
		Use: "sandbox", Short: "A cluster to try the SDK on", Long: longHelp,
		SilenceUsage: true, SilenceErrors: true,
	}
	root.PersistentFlags().StringVar(&name, "name", "default", "name of the sandbox; several can run side by side")
	root.AddCommand(
		buildCommand(), upCommand(&name), downCommand(&name), statusCommand(&name),
		sshCommand(&name), execCommand(&name), breakCommand(&name), logsCommand(&name), demoCommand(),
	)
	return root
}

// builder builds what the sandbox runs, and tells the user what takes time.
func builder() (tools.Builder, error) {
	self, err := os.Executable()
	if err != nil {
		return tools.Builder{}, fmt.Errorf("this program's own file: %w", err)
	}
	return tools.Builder{Self: self, Say: say}, nil
}

func say(line string) { fmt.Fprintln(os.Stderr, line) }

// open is the sandbox of that name, which is to be running.
func open(ctx context.Context, name string) (*cluster.Client, error) {
	dir, err := cluster.StateDir(name)
	if err != nil {
		return nil, err
	}
	c, err := cluster.Open(ctx, dir)
	if errors.Is(err, cluster.ErrNotRunning) {
		return nil, fmt.Errorf("%w; start one with: go run . up", err)
	}
	return c, err
}

func buildCommand() *cobra.Command {
	return &cobra.Command{
		Use: "build", Short: "Build what a sandbox runs, and nothing else", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := builder()
			if err != nil {
				return err
			}
			programs, err := b.Programs(cmd.Context())
			if err != nil {
				return err
			}
			for name, path := range programs {
				fmt.Fprintf(cmd.OutOrStdout(), "%s\t%s\n", name, path)
			}
			return nil
		},
	}
}

func downCommand(name *string) *cobra.Command {
	return &cobra.Command{
		Use: "down", Short: "End the sandbox; nothing of it is left running", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := open(cmd.Context(), *name)
			if errors.Is(err, cluster.ErrNotRunning) {
				say("no sandbox is running")
				return nil
			}
			if err != nil {
				return err
			}
			if err := c.Down(cmd.Context()); err != nil {
				return err
			}
			say("down; nothing of it is left")
			return nil
		},
	}
}

func statusCommand(name *string) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Say what runs", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := open(cmd.Context(), *name)
			if err != nil {
				return err
			}
			st, err := c.Status(cmd.Context())
			if err != nil {
				return err
			}
			printStatus(cmd, st)
			return nil
		},
	}
}

func printStatus(cmd *cobra.Command, st cluster.Status) {
	out := cmd.OutOrStdout()
	state := "starting"
	if st.Ready {
		state = "ready"
	}
	fmt.Fprintf(out, "%s for %v; SSH server: %s; state in %s\n", state, time.Since(st.Started).Round(time.Second), st.SSH, st.Dir)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "HOST\tROLE\tADDRESS\tSTATE")
	for _, h := range st.Hosts {
		s := "up"
		if !h.Up {
			s = "down"
		}
		if h.Cut {
			s += ", cut off"
		}
		via := ""
		if h.Via != "" {
			via = " through " + h.Via
		}
		fmt.Fprintf(w, "%s\t%s\t%s%s\t%s\n", h.Name, h.Role, h.Address, via, s)
	}
	_ = w.Flush() // to standard output, as all the rest
}

func breakCommand(name *string) *cobra.Command {
	var all []string
	for _, f := range cluster.Faults() {
		all = append(all, string(f))
	}
	return &cobra.Command{
		Use: "break HOST " + strings.Join(all, "|"), Short: "Make something happen to a host, or mend it", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := open(cmd.Context(), *name)
			if err != nil {
				return err
			}
			return c.Break(cmd.Context(), args[0], cluster.Fault(args[1]))
		},
	}
}

func logsCommand(name *string) *cobra.Command {
	return &cobra.Command{
		Use: "logs HOST", Short: "Print what a host's services wrote, and what it was told over SSH", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := open(cmd.Context(), *name)
			if err != nil {
				return err
			}
			commands, err := c.Commands(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			for _, told := range commands {
				fmt.Fprintf(cmd.OutOrStdout(), "%s %s$ %s\n", told.Time.Format("15:04:05.000"), told.User, firstLine(told.Line))
			}
			script := "cd " + initd.LogDir + ` && for f in *.log; do [ -e "$f" ] && echo "==> $f" && cat "$f"; done`
			_, err = c.Run(cmd.Context(), args[0], initd.Exec{Args: []string{"/bin/sh", "-c", script}}, os.Stdin, os.Stdout, os.Stderr)
			if errors.Is(err, host.ErrDown) {
				return fmt.Errorf("%s is down; its logs can be read once it is started: go run . break %s start", args[0], args[0])
			}
			return err
		},
	}
}

func firstLine(s string) string {
	line, rest, more := strings.Cut(s, "\n")
	if more {
		line += fmt.Sprintf(" … (%d more bytes)", len(rest))
	}
	return line
}
