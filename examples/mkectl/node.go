package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/mke"
)

// addFlags are those of node add.
type addFlags struct {
	ssh              sshFlags
	hosts            string
	scope            string
	concurrency      int
	facts            time.Duration
	ttl, renew       time.Duration
	adopt            bool
	minutes          int
	readinessMinutes int
	skip             []string
}

func (a *app) node() *cobra.Command {
	c := &cobra.Command{
		Use:   "node",
		Short: "Add hosts to the cluster",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.nodeAdd())
	return c
}

func (a *app) nodeAdd() *cobra.Command {
	var f addFlags
	c := &cobra.Command{
		Use:   "add",
		Short: "Add the workers of a hosts file to the cluster",
		Long:  addHelp(),
		Example: `  mkectl node add --hosts-path hosts.yaml
  mkectl node add --hosts-path hosts.yaml --readiness-timeout-minutes 5
  mkectl node add --hosts-path hosts.yaml --ssh-key ~/.ssh/node-key.pem --bastion-ssh-key ~/.ssh/bastion-key.pem
  MKE_SUDO_PASSWORD=... mkectl node add -o json > add.json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.add(c.Context(), c.CommandPath(), f) },
	}
	fl := c.Flags()
	fl.SortFlags = false
	f.hosts = "hosts.yaml"
	fl.Var((*filePath)(&f.hosts), "hosts-path", "`FILE` that lists the hosts")
	fl.StringVar(&f.scope, "scope", string(hosts.Worker), "`ROLE` to operate on; hosts of another role are left alone")
	f.ssh.add(fl)
	fl.IntVar(&f.concurrency, "concurrency", 30, "work on at most `N` hosts at once; 0 for no bound")
	fl.StringSliceVar(&f.skip, "skip-preflight", nil, "pre-flight `CHECKS` to leave out: os, storage, cpu, memory")
	fl.IntVar(&f.minutes, "timeout-minutes", 60, "`MINUTES` until the operation as a whole is ended")
	fl.IntVar(&f.readinessMinutes, "readiness-timeout-minutes", 10, "`MINUTES` until each node has to be Ready")
	fl.DurationVar(&f.facts, "collect-facts-timeout", 5*time.Minute, "how long gathering the facts of all hosts may take")
	fl.DurationVar(&f.ttl, "lease-ttl", time.Minute, "how long the operation lock outlives a client that has died")
	fl.DurationVar(&f.renew, "lease-renew-interval", 20*time.Second, "how often the lock is renewed; shorter than --lease-ttl")
	fl.BoolVar(&f.adopt, "lease-adopt-stale", false, "take over the stale lock of the same operation on the same hosts")
	return c
}

// addHelp says what the command does, from what it will do.
func addHelp() string {
	var b strings.Builder
	b.WriteString("Add the workers of a hosts file to the cluster. It is safe to repeat: a stage that has\nnothing to do is skipped, and hosts that have joined are only checked.\n\nThe stages, in order:\n\n")
	for i, s := range mke.Sequence(mke.Add, hosts.Worker) {
		fmt.Fprintf(&b, "  %2d  %s\n", i+1, s)
	}
	b.WriteString(`
Nothing is changed before the last check, operation-lock, has passed.

The exit code says what to do next: 0 nothing; 1 look at the message, perhaps
repeat it; 2 mend the command line or the hosts file; 3 follow the runbook that
is printed; 4 wait for the other operation. The first Ctrl-C ends the operation
at the next safe point, the second at once.`)
	return b.String()
}

// options turns the flags into options. All that is wrong is said together.
func (f addFlags) options() (mke.Options, error) {
	var errs []error
	switch hosts.Role(f.scope) {
	case hosts.Worker:
	case hosts.ControllerWorker:
		errs = append(errs, errors.New("--scope controller+worker: this version adds workers only"))
	default:
		errs = append(errs, fmt.Errorf("--scope %q: want worker", f.scope))
	}
	errs = append(errs, positive(map[string]int64{
		"timeout-minutes": int64(f.minutes), "readiness-timeout-minutes": int64(f.readinessMinutes),
		"collect-facts-timeout": int64(f.facts), "lease-ttl": int64(f.ttl), "lease-renew-interval": int64(f.renew),
	}))
	if f.renew >= f.ttl && f.ttl > 0 {
		errs = append(errs, fmt.Errorf("--lease-renew-interval %s: want less than --lease-ttl, %s", f.renew, f.ttl))
	}
	if f.concurrency < 0 {
		errs = append(errs, fmt.Errorf("--concurrency %d: want 0, for no bound, or more", f.concurrency))
	}
	if err := hosts.ValidateSkips(f.skip...); err != nil {
		errs = append(errs, fmt.Errorf("--skip-preflight: %w", err))
	}
	specs, err := hosts.LoadFile(expand(f.hosts))
	if errors.Is(err, os.ErrNotExist) {
		err = fileError("--hosts-path", f.hosts, "want a file that lists the hosts to add", err)
	}
	errs = append(errs, err)
	o := mke.Options{
		Hosts: specs, Role: hosts.Role(f.scope), Concurrency: f.concurrency, SkipPreflight: f.skip,
		Timeouts: mke.Timeouts{Facts: f.facts, Readiness: time.Duration(f.readinessMinutes) * time.Minute},
		Lease:    mke.Lease{TTL: f.ttl, Renew: f.renew, AdoptStale: f.adopt},
	}
	if f.concurrency == 0 {
		o.Concurrency = -1 // the SDK's word for no bound
	}
	return o, errors.Join(errs...)
}

// add runs node add.
func (a *app) add(ctx context.Context, command string, f addFlags) error {
	p := a.printer()
	ctx, stop, end := interrupts(ctx, func(s string) { fmt.Fprintln(aboveWriter{p, a.stderr}, s) })
	defer end()
	s := &secrets{env: a.getenv("MKE_SUDO_PASSWORD"), in: a.stdin, out: aboveWriter{p, a.stderr}, stop: stop}

	opts, optsErr := f.options()
	ssh, sshErr := f.ssh.dialer(a, s)
	kubeconfig, kubeErr := a.kubeconfig()
	if err := errors.Join(a.flags.check(), optsErr, sshErr, kubeErr); err != nil {
		p.close()
		a.report(command, outcome{err: &usageError{command, err}})
		return nil
	}
	defer ssh.Close()

	limit := fmt.Errorf("not done within --timeout-minutes %d", f.minutes)
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(f.minutes)*time.Minute, limit)
	defer cancel()
	if a.flags.output != "json" {
		fmt.Fprintf(a.stdout, "adding the workers of %s to the cluster of %s\n", f.hosts, kubeconfig)
	}
	var w watch
	opts.Stop, opts.Logger = stop, a.logger(p)
	ssh.Trace = trace(opts.Logger)
	opts.OnEvent = func(e mke.Event) {
		w.see(e)
		p.event(e)
	}
	start := time.Now()
	result, err := a.sdk.addNodes(ctx, mke.ConnectOptions{Kubeconfig: kubeconfig, SSH: ssh}, opts)
	p.close()
	a.report(command, outcome{result: &result, changed: w.changed, took: time.Since(start), err: withCause(ctx, err)})
	return nil
}

// withCause adds to err why ctx was ended, if that is what err is about and it
// does not say so.
func withCause(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if err == nil || cause == nil || errors.Is(err, cause) {
		return err
	}
	return errors.Join(cause, err)
}

// watch notes whether anything can have been changed.
type watch struct{ locked, changed bool }

func (w *watch) see(e mke.Event) {
	switch {
	case e.Stage == mke.OperationLock && e.Kind == mke.Finished:
		w.locked = true
	case e.Kind == mke.Started && w.locked:
		w.changed = true
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
