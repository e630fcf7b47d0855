package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/cluster"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/initd"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/wire"
)

func sshCommand(name *string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ssh HOST [-- CMD…]", Short: "A shell on a host, or a command there", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := open(cmd.Context(), *name)
			if err != nil {
				return err
			}
			if len(args) == 1 && term.IsTerminal(0) && term.IsTerminal(1) {
				return shell(cmd.Context(), c, args[0])
			}
			run := args[1:]
			if len(run) > 0 && run[0] == "--" {
				run = run[1:]
			}
			if len(run) == 0 {
				run = []string{"/bin/sh"}
			}
			code, err := c.Run(cmd.Context(), args[0], initd.Exec{Args: run}, os.Stdin, os.Stdout, os.Stderr)
			if err != nil {
				return err
			}
			return status(code)
		},
	}
	cmd.Flags().SetInterspersed(false) // what follows the host is the command's
	return cmd
}

func status(code int) error {
	if code == 0 {
		return nil
	}
	return exitCode(code)
}

// shell is an interactive login on a host: the host's own terminal, joined to this one.
func shell(ctx context.Context, c *cluster.Client, host string) error {
	conn, err := c.Init(ctx, host)
	if err != nil {
		return err
	}
	defer conn.Close()
	cols, rows, err := term.GetSize(0)
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	e := initd.Exec{
		Args: []string{"/bin/sh", "-c", `exec "$SHELL" -l`}, TTY: true, Rows: uint16(rows), Cols: uint16(cols),
		Env: []string{"TERM=" + os.Getenv("TERM")},
	}
	if err := wire.Send(conn, initd.Request{Exec: &e}); err != nil {
		return err
	}
	var r initd.Reply
	files, err := wire.Receive(conn, &r)
	if err != nil {
		return err
	}
	if r.Failure != nil {
		return r.Failure
	}
	if len(files) != 1 {
		return errors.New("the host gave no terminal")
	}
	pty := files[0]
	defer pty.Close()
	old, err := term.MakeRaw(0)
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	defer func() { _ = term.Restore(0, old) }() // at worst the user types `reset`
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	go func() {
		for range resized {
			if cols, rows, err := term.GetSize(0); err == nil {
				_ = unix.IoctlSetWinsize(int(pty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(cols)})
			}
		}
	}()
	go func() { _, _ = io.Copy(pty, os.Stdin) }() // ends with this process
	_, _ = io.Copy(os.Stdout, pty)                // ends when the shell does, in an error
	r = initd.Reply{}
	if _, err := wire.Receive(conn, &r); err != nil {
		return err
	}
	return status(r.Code)
}

func execCommand(name *string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "exec -- CMD…", Short: "Run a command of this machine where the sandbox's hosts can be reached",
		Long: `exec runs a command of this machine in the sandbox's network, in its state directory, where
hosts.yaml and the keys are. KUBECONFIG is set, HOME is a directory of the sandbox that knows its
host keys, and kubectl and mkectl are on PATH.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := open(cmd.Context(), *name)
			if err != nil {
				return err
			}
			return execBeside(cmd.Context(), c, args)
		},
	}
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// execBeside runs a command on the operator's side. Its signals are its own: a Ctrl-C reaches it
// from the terminal, and this waits for what it makes of it.
func execBeside(ctx context.Context, c *cluster.Client, args []string) error {
	bin, err := userPrograms(ctx, c.Dir(), args[0] != "kubectl")
	if err != nil {
		return err
	}
	ns, err := c.Netns(ctx)
	if err != nil {
		return err
	}
	defer ns.Close()
	path := bin + string(filepath.ListSeparator) + os.Getenv("PATH")
	if err := os.Setenv("PATH", path); err != nil { // LookPath has no other way to be told
		return err
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = c.Dir()
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(c.Dir(), cluster.KubeconfigFile), "PWD="+c.Dir(), "HOME="+filepath.Join(c.Dir(), cluster.HomeDir))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// The thread joins the network and is the one that forks; it is not used again.
	runtime.LockOSThread()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("join the sandbox's network: %w", err)
	}
	err = cmd.Run()
	if ee, ok := errors.AsType[*exec.ExitError](err); ok {
		ws := ee.Sys().(syscall.WaitStatus)
		if ws.Signaled() {
			return exitCode(128 + int(ws.Signal()))
		}
		return exitCode(ws.ExitStatus())
	}
	return err
}

// userPrograms makes a directory with the programs that a user of the sandbox calls: kubectl, and
// mkectl if that is wanted, as its sources are now.
func userPrograms(ctx context.Context, dir string, mkectl bool) (string, error) {
	b, err := builder()
	if err != nil {
		return "", err
	}
	programs, err := b.Kubernetes(ctx)
	if err != nil {
		return "", err
	}
	links := map[string]string{"kubectl": programs["kubectl"]}
	if mkectl {
		if links["mkectl"], err = b.Mkectl(ctx); err != nil {
			return "", err
		}
	}
	bin := filepath.Join(dir, "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		return "", err
	}
	for name, target := range links {
		link := filepath.Join(bin, name)
		if old, err := os.Readlink(link); err == nil && old == target {
			continue
		}
		// Renamed over the old one: somebody else may be starting it.
		part := fmt.Sprintf("%s.%d", link, os.Getpid())
		if err := os.Symlink(target, part); err != nil {
			return "", err
		}
		if err := os.Rename(part, link); err != nil {
			return "", err
		}
	}
	return bin, nil
}
