// Package k0s is a stand-in for the k0s program: the same commands, outputs, exit codes and files, as recorded from k0s v1.36.3+k0s.2.
//
// What it covers is the part that adding nodes to a cluster drives. A command or flag of the real
// k0s that is not covered says so and fails; none pretends.
package k0s

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Version is the version that the stand-in plays.
const Version = "v1.36.3+k0s.2"

// kubeletVersion is what Nodes of this version report.
const kubeletVersion = "v1.36.3+k0s"

// Main runs one k0s command and gives its exit status. args begin with the name or path by which
// the program was called, as os.Args do: `k0s install` writes that path into the service.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	a := &app{args: args, stdin: stdin, out: stdout, err: stderr, log: newLogger(stderr, slog.LevelWarn)}
	root := a.rootCommand()
	root.SetArgs(args[1:])
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var code exitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	fmt.Fprintln(stderr, "Error:", err)
	return 1
}

// exitCode is the error of a command that has said what there is to say and ends with this status.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit status %d", int(c)) }

// app is one run of the program.
type app struct {
	args     []string
	stdin    io.Reader
	out, err io.Writer
	log      *slog.Logger
	p        flagValues
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{Use: "k0s", SilenceUsage: true, SilenceErrors: true, Args: cobra.NoArgs, RunE: showHelp}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(
		a.versionCommand(), a.statusCommand(), a.installCommand(), a.startCommand(), a.stopCommand(), a.resetCommand(),
		a.tokenCommand(), a.etcdCommand(), a.kubectlCommand(), a.controllerCommand(), a.workerCommand(),
	)
	root.AddCommand(absentCommands()...)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { printHelp(a.out, cmd) })
	return root
}

// showHelp is what a command does that only has commands below it.
func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// absent are the commands of the real k0s that the stand-in does not play.
var absent = []string{"airgap", "api", "backup", "completion", "config", "ctr", "docs", "keepalived-config", "kubeconfig", "restore", "sysinfo"}

func absentCommands() []*cobra.Command {
	var out []*cobra.Command
	for _, name := range absent {
		out = append(out, &cobra.Command{Use: name, DisableFlagParsing: true, RunE: notPlayed})
	}
	return out
}

// notPlayed refuses a command, but for its help where that is recorded.
func notPlayed(cmd *cobra.Command, args []string) error {
	for _, arg := range args {
		if arg == "--help" || arg == "-h" {
			return cmd.Help()
		}
	}
	return fmt.Errorf("%s is not part of the stand-in", cmd.CommandPath())
}
