package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/cluster"
)

func demoCommand() *cobra.Command {
	return &cobra.Command{
		Use: "demo", Short: "Show what the SDK does, on a sandbox that is made for it and ended again", Args: cobra.NoArgs,
		Long: `demo makes a sandbox of its own, adds workers to its cluster with mkectl, makes the addition refuse
and repair, and ends the sandbox. It asks nothing. Everything it does can be done by hand on what
"up" makes.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), cmd.OutOrStdout()) },
	}
}

// A demo is a sandbox and where it is told about.
type demo struct {
	ctx context.Context
	out io.Writer
	box *cluster.Sandbox
	dir string
	n   int // steps told so far
}

// runDemo makes a sandbox, walks through the steps and ends it, on every way out.
func runDemo(ctx context.Context, out io.Writer) error {
	if err := cluster.Fit(); err != nil {
		return err
	}
	dir, err := cluster.StateDir("demo")
	if err != nil {
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
	if _, err := b.Mkectl(ctx); err != nil {
		return err
	}
	d := &demo{ctx: ctx, out: out, dir: dir}
	d.tell("A cluster of one controller, with spare hosts beside it and one behind a bastion.",
		"Each host is a set of namespaces of this machine with its own address, file system and SSH server;",
		"etcd and the Kubernetes API server are the real ones, k0s is a stand-in.")
	d.box, err = cluster.Up(ctx, cluster.Config{
		Dir: dir, Programs: programs, Controllers: 1, Spare: 3, Bastion: true, SSH: os.Getenv("MKESDK_SANDBOX_SSH"),
	}, say)
	if err != nil {
		return err
	}
	defer func() {
		d.box.Close()
		fmt.Fprintln(out, "\nThe sandbox has ended; nothing of it is left running. To have one that stays: go run . up")
	}()
	for _, step := range demoSteps() {
		d.tell(step.title, step.text...)
		if step.arrange != nil {
			if err := step.arrange(d); err != nil {
				return fmt.Errorf("demo: %w", err)
			}
		}
		for _, c := range step.commands {
			if err := d.typeIn(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// tell prints the heading of a step and what there is to see.
func (d *demo) tell(title string, text ...string) {
	d.n++
	fmt.Fprintf(d.out, "\n== %d. %s\n", d.n, title)
	for _, line := range text {
		fmt.Fprintf(d.out, "   %s\n", line)
	}
}

// typeIn runs a command as a user of the sandbox types it, beside the hosts, and demands the exit
// code that the step promises.
func (d *demo) typeIn(c typed) error {
	fmt.Fprintf(d.out, "\n$ %s\n", c.line)
	// Joining the sandbox's network costs the thread that does it: it ends with its goroutine.
	done := make(chan error, 1)
	go func() { done <- execBeside(d.ctx, d.box.Client, strings.Fields(c.line)) }()
	err := <-done
	if d.ctx.Err() != nil {
		return context.Cause(d.ctx)
	}
	code := 0
	if e, ok := err.(exitCode); ok { //nolint:errorlint // execBeside returns it as it is
		code, err = int(e), nil
	}
	if err != nil {
		return err
	}
	if code != c.code {
		return fmt.Errorf("demo: %q ended with exit code %d, want %d", c.line, code, c.code)
	}
	if code != 0 {
		fmt.Fprintf(d.out, "(exit code %d)\n", code)
	}
	return nil
}

// on runs a script on a host, behind the SDK's back.
func (d *demo) on(host, script string) (string, error) {
	out, code, err := d.box.Output(d.ctx, host, nil, "/bin/sh", "-c", script)
	if err == nil && code != 0 {
		err = fmt.Errorf("on %s: exit status %d: %s", host, code, out)
	}
	return out, err
}

// hostsFile writes a hosts file of some of the sandbox's hosts.
func (d *demo) hostsFile(file string, names ...string) error {
	st, err := d.box.Status(d.ctx)
	if err != nil {
		return err
	}
	var all, some []cluster.Plan
	for _, h := range st.Hosts {
		all = append(all, h.Plan)
	}
	for _, name := range names {
		for _, p := range all {
			if p.Name == name {
				some = append(some, p)
			}
		}
	}
	text, err := cluster.HostsYAML(some, all, d.dir)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.dir, file), []byte(text), 0o600)
}
