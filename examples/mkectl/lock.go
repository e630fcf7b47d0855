package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mkesdk/mkesdk/mke"
)

func (a *app) lock() *cobra.Command {
	c := &cobra.Command{
		Use:   "lock",
		Short: "Look at the operation locks",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.lockShow())
	return c
}

func (a *app) lockShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Show who holds which lock, and how to clear one whose holder has died",
		Long: `Show who holds which lock, for what, since when and until when, and how to clear
one whose holder has died. It changes nothing.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.showLocks(c.Context(), c.CommandPath()) },
	}
}

func (a *app) showLocks(ctx context.Context, command string) error {
	ctx, cancel := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	kubeconfig, kubeErr := a.kubeconfig()
	if err := errors.Join(a.flags.check(), kubeErr); err != nil {
		a.report(command, outcome{err: &usageError{command, err}})
		return nil
	}
	// No host is reached for this, and none would be: an SSH without host keys refuses.
	locks, err := a.sdk.locks(ctx, mke.ConnectOptions{Kubeconfig: kubeconfig, SSH: &mke.SSH{}})
	switch {
	case err != nil:
		a.report(command, outcome{err: err})
	case a.flags.output == "json":
		_ = json.NewEncoder(a.stdout).Encode(lockList{Kind: "locks", Locks: append([]mke.LockInfo{}, locks...)})
	default:
		printLocks(a.stdout, locks, time.Now())
	}
	return nil
}

// lockList is what lock show prints with -o json.
type lockList struct {
	Kind  string         `json:"kind"` // "locks"
	Locks []mke.LockInfo `json:"locks"`
}

// printLocks writes the locks as a table, and how to clear those that are stale.
func printLocks(w io.Writer, locks []mke.LockInfo, now time.Time) {
	if len(locks) == 0 {
		fmt.Fprintln(w, "no operation holds a lock")
		return
	}
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "LEASE\tOPERATION\tSTATE\tHOSTS\tBY\tSINCE\tEXPIRES\tSTALE")
	var stale []string
	for _, l := range locks {
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Lease, l.Operation, dash(l.State), dash(strings.Join(l.Hosts, ",")),
			l.Client, l.Started.UTC().Format(time.RFC3339), relative(l.Expires, now), yesNo(l.Stale))
		if l.Stale {
			stale = append(stale, l.Lease)
		}
	}
	_ = tab.Flush()
	if len(stale) == 0 {
		fmt.Fprintln(w, "\nA lock is renewed while its operation runs and given back when it ends.")
		return
	}
	fmt.Fprintf(w, `
A stale lock was not renewed in time: its client has died, or can't reach the cluster. First
make sure on the machine named under BY that no mkectl of that pid runs. Then either repeat
the same operation on the same hosts, which goes on where it ended:

  mkectl node add --lease-adopt-stale ...

or, if it is not to be gone on with, delete the lock:

  kubectl -n mke delete lease %s
`, strings.Join(stale, " "))
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// relative says when t is, seen from now.
func relative(t, now time.Time) string {
	d := t.Sub(now).Round(time.Second)
	if d < 0 {
		return (-d).String() + " ago"
	}
	return "in " + d.String()
}
