package sandboxtest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/cluster"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/host"
)

// Host is a host of a sandbox.
type Host struct {
	t      testing.TB
	client *cluster.Client
	plan   cluster.Plan
}

// Command is what a host was told over SSH.
type Command = host.Command

// Snapshot is everything that a host can write, by path.
type Snapshot = host.Snapshot

// Change is a path that is not what it was.
type Change = host.Change

// Diff lists what changed on a host from before to after, by path. What a host's own init and SSH
// server write is not among it.
func Diff(before, after Snapshot) []Change { return host.Diff(before, after) }

// Host is the host of that name; the test fails where there is none.
func (c *Cluster) Host(name string) *Host {
	c.t.Helper()
	var names []string
	for _, h := range c.status().Hosts {
		if h.Name == name {
			return &Host{t: c.t, client: c.client.Client, plan: h.Plan}
		}
		names = append(names, h.Name)
	}
	c.t.Fatalf("no host %q in this sandbox, only %s", name, strings.Join(names, ", "))
	return nil
}

// Hosts are the names of all hosts.
func (c *Cluster) Hosts() []string {
	c.t.Helper()
	var names []string
	for _, h := range c.status().Hosts {
		names = append(names, h.Name)
	}
	return names
}

// Name is the host's name in the sandbox.
func (h *Host) Name() string { return h.plan.Name }

// Address is where the host is reached; from behind the bastion, where that is.
func (h *Host) Address() string { return h.plan.Address }

// Exec runs a command on the host, not over SSH, and returns what it printed, both streams, less
// the final newline. The test fails where the command does.
func (h *Host) Exec(args ...string) string {
	h.t.Helper()
	out, err := h.Run(args...)
	if err != nil {
		h.t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// Run is Exec for a command that may fail: then the error says with which status.
func (h *Host) Run(args ...string) (string, error) {
	return h.run(h.t.Context(), nil, args...)
}

// Sh runs a script with the host's /bin/sh; otherwise it is Exec.
func (h *Host) Sh(script string) string {
	h.t.Helper()
	return h.Exec("/bin/sh", "-c", script)
}

// WriteFile writes a file on the host as root, making its directory where that is missing.
func (h *Host) WriteFile(path string, data []byte, mode os.FileMode) {
	h.t.Helper()
	script := fmt.Sprintf(`mkdir -p "$(dirname "$1")" && umask 077 && cat >"$1" && chmod %o "$1"`, mode)
	if out, err := h.run(h.t.Context(), data, "/bin/sh", "-c", script, "sh", path); err != nil {
		h.t.Fatalf("write %s: %v\n%s", path, err, out)
	}
}

func (h *Host) run(ctx context.Context, stdin []byte, args ...string) (string, error) {
	out, code, err := h.client.Output(ctx, h.plan.Name, stdin, args...)
	if err != nil {
		return "", err
	}
	if code != 0 {
		return out, fmt.Errorf("%s: %s: exit status %d", h.plan.Name, strings.Join(args, " "), code)
	}
	return out, nil
}

// Commands lists what the host was told over SSH so far, in order.
func (h *Host) Commands() []Command {
	h.t.Helper()
	list, err := h.client.Commands(h.t.Context(), h.plan.Name)
	if err != nil {
		h.t.Fatal(err)
	}
	return list
}

// Snapshot reads everything that the host can write.
func (h *Host) Snapshot() Snapshot {
	h.t.Helper()
	s, err := h.client.Snapshot(h.t.Context(), h.plan.Name)
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

// Kill ends the host as a power cut does. It stays down until Start.
func (h *Host) Kill() { h.t.Helper(); h.fault(cluster.Kill) }

// Start switches on a host that is down, and returns when its SSH server listens.
func (h *Host) Start() { h.t.Helper(); h.fault(cluster.Start) }

// Reboot stops the host's services and starts the host again; it returns when its SSH server
// listens.
func (h *Host) Reboot() { h.t.Helper(); h.fault(cluster.Reboot) }

// Cut takes the host's cables out: nothing reaches it or leaves it, and nobody is told.
func (h *Host) Cut() { h.t.Helper(); h.fault(cluster.Cut) }

// Heal puts the host's cables in again.
func (h *Host) Heal() { h.t.Helper(); h.fault(cluster.Heal) }

func (h *Host) fault(f cluster.Fault) {
	h.t.Helper()
	if err := h.client.Break(h.t.Context(), h.plan.Name, f); err != nil {
		h.t.Fatal(err)
	}
}

// Eventually waits until ok holds, asking again and again; the test fails with what's words after
// the time is up.
func Eventually(t testing.TB, within time.Duration, what string, ok func() bool) {
	t.Helper()
	end := time.After(within)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-end:
			t.Fatalf("after %v still not: %s", within, what)
		case <-t.Context().Done():
			t.Fatalf("the test ended while waiting: %s", what)
		case <-tick.C:
		}
	}
}
