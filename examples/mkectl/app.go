package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/mkesdk/mkesdk/mke"
)

// An app is mkectl in the world that it runs in.
type app struct {
	stdin          *os.File
	stdout, stderr io.Writer
	getenv         func(string) string
	sdk            sdk

	flags globalFlags
	exit  int // set by the command that ran
}

// An sdk is what the commands ask of the SDK.
type sdk interface {
	addNodes(ctx context.Context, to mke.ConnectOptions, o mke.Options) (mke.Result, error)
	locks(ctx context.Context, to mke.ConnectOptions) ([]mke.LockInfo, error)
}

// globalFlags are those of every command.
type globalFlags struct {
	kubeconfig string
	logLevel   string
	output     string
	noColor    bool
	noPretty   bool
}

// run carries out one command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return a.exit
	}
	// The commands report what they did themselves: what is left is the command
	// line's.
	a.report(cmd.CommandPath(), outcome{err: &usageError{cmd.CommandPath(), err}})
	return exitUsage
}

func (a *app) root() *cobra.Command {
	c := &cobra.Command{
		Use:           "mkectl",
		Short:         "Add hosts to an MKE 4 cluster over SSH",
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.SetVersionTemplate("{{.DisplayName}} {{.Version}}\n")
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return kinder(err) })
	f := c.PersistentFlags()
	f.Var((*filePath)(&a.flags.kubeconfig), "kubeconfig", "kubeconfig `FILE` of the cluster (default $KUBECONFIG, then ~/.mke/mke.kubeconf)")
	f.StringVarP(&a.flags.logLevel, "logLevel", "l", "info", "`LEVEL` from which on is logged, to standard error: debug, info, warn or error")
	f.StringVarP(&a.flags.output, "output", "o", "text", "`FORMAT`: text, or json with one event a line and the result last")
	f.BoolVar(&a.flags.noColor, "no-color", false, "no colours (as with NO_COLOR set)")
	f.BoolVar(&a.flags.noPretty, "no-pretty-print", false, "plain lines on a terminal too, each written once")
	c.AddCommand(a.node(), a.lock())
	c.CompletionOptions.HiddenDefaultCmd = true
	return c
}

// A filePath is a flag that, where it is given, names a file: an empty one is a variable that was
// not set, and must not become whatever the default happens to be.
type filePath string

func (p *filePath) String() string { return string(*p) }
func (p *filePath) Type() string   { return "string" }
func (p *filePath) Set(s string) error {
	if s == "" {
		return errors.New("it is empty: want the path of a file")
	}
	*p = filePath(s)
	return nil
}

// check says what is wrong with the flags of every command.
func (f globalFlags) check() error {
	if f.output != "text" && f.output != "json" {
		return fmt.Errorf("--output %q: want text or json", f.output)
	}
	_, err := f.level()
	return err
}

func (f globalFlags) level() (slog.Level, error) {
	levels := map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	}
	l, ok := levels[strings.ToLower(f.logLevel)]
	if !ok {
		return 0, fmt.Errorf("--logLevel %q: want debug, info, warn or error", f.logLevel)
	}
	return l, nil
}

// printer returns what shows the events of an operation on this app's output.
func (a *app) printer() printer {
	if a.flags.output == "json" {
		return newJSON(a.stdout)
	}
	if width, ok := terminal(a.stdout); ok && !a.flags.noPretty && a.getenv("TERM") != "dumb" {
		return newLive(a.stdout, width, !a.flags.noColor && a.getenv("NO_COLOR") == "")
	}
	return newPlain(a.stdout)
}

// logger returns where the SDK logs to. Lines pass above what is redrawn in place.
func (a *app) logger(p printer) *slog.Logger {
	level, err := a.flags.level()
	if err != nil {
		level = slog.LevelInfo // check has refused it
	}
	return slog.New(slog.NewTextHandler(aboveWriter{p, a.stderr}, &slog.HandlerOptions{Level: level}))
}

// terminal returns the width of w if it is a terminal.
func terminal(w io.Writer) (width func() int, ok bool) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, false
	}
	return func() int {
		if cols, _, err := term.GetSize(int(f.Fd())); err == nil && cols > 0 {
			return cols
		}
		return 80
	}, true
}

// home returns a path below the user's home directory, or below the working
// directory if there is none.
func home(elem ...string) string {
	dir, err := os.UserHomeDir()
	if err != nil {
		dir = "."
	}
	return filepath.Join(append([]string{dir}, elem...)...)
}

// expand replaces a leading ~ by the home directory: a shell leaves it alone in
// --flag=~/file.
func expand(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return home(rest)
	}
	return path
}

func version() string {
	v := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v = info.Main.Version
	}
	return v + " for MKE " + mke.SupportedMKE
}
