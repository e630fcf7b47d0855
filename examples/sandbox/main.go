// Command sandbox makes a cluster to try the SDK on: a network of hosts made of namespaces on this
// machine, with a real etcd, a real Kubernetes API server and real SSH.
//
// The same binary is the hosts' PID 1, their systemctl and their k0s, each when it is started
// under that name.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/cluster"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/control"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/host"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/initd"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/k0s"
)

func main() {
	os.Exit(run(context.Background(), os.Args))
}

// run is the program; args[0] is the name that it was started under.
func run(ctx context.Context, args []string) int {
	name := filepath.Base(args[0])
	switch name {
	case "init":
		return host.InitMain(ctx)
	case "systemctl", "reboot", "poweroff", "halt":
		return initd.SystemctlMain(ctx, name, args[1:], os.Stdout, os.Stderr)
	case "k0s":
		return k0s.Main(ctx, args, os.Stdin, os.Stdout, os.Stderr)
	case "etcd":
		control.EtcdMain(args)
		return 0
	case "journalctl":
		return initd.JournalctlMain(args[1:], os.Stdout, os.Stderr)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if name == cluster.Supervisor {
		return cluster.Supervise(ctx, parts()...)
	}
	if runtime.GOOS != "linux" {
		fmt.Fprintln(os.Stderr, "sandbox: hosts are made of Linux namespaces; this runs on Linux only, as root")
		return 1
	}
	if len(args) == 2 && args[1] == host.SSHDCommand {
		return host.SSHDMain(ctx)
	}
	cmd := newCommand()
	cmd.SetArgs(args[1:])
	err := cmd.ExecuteContext(ctx)
	if code, ok := errors.AsType[exitCode](err); ok {
		return int(code)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		return 1
	}
	return 0
}

// exitCode is the status of a command that was run for the user.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }
