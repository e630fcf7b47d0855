package sandboxtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/cluster"
)

// shown is how many lines of each host a failed test prints; its file has them all.
const shown = 12

// tell keeps what helps to see why a test failed in a file that outlives the test, and prints the
// end of it.
func (c *Cluster) tell() {
	// The test's own context has ended by now.
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var whole, brief strings.Builder
	section := func(title, text string) {
		fmt.Fprintf(&whole, "=== %s\n%s\n", title, text)
		lines := strings.SplitAfter(strings.TrimSpace(text), "\n")
		fmt.Fprintf(&brief, "=== %s\n%s\n", title, strings.Join(lines[max(0, len(lines)-shown):], ""))
	}
	log, err := os.ReadFile(filepath.Join(c.dir, cluster.LogFile))
	if err != nil {
		log = []byte(err.Error())
	}
	section("supervisor", string(log))
	st, err := c.client.Status(ctx)
	if err != nil {
		section("the sandbox is gone", err.Error())
	}
	for _, s := range st.Hosts {
		h := &Host{t: c.t, client: c.client.Client, plan: s.Plan}
		section(fmt.Sprintf("%s (up: %v)", s.Name, s.Up), h.story(ctx))
	}
	name := ""
	if f, err := os.CreateTemp("", "mkesdk-sandbox-*.log"); err == nil {
		_, _ = f.WriteString(whole.String()) // what could not be kept is at least printed
		_ = f.Close()
		name = f.Name()
	}
	c.t.Logf("the sandbox's side of it; whole in %s:\n%s", name, brief.String())
}

// story is what a host was told, and what its services wrote.
func (h *Host) story(ctx context.Context) string {
	var out strings.Builder
	commands, err := h.client.Commands(ctx, h.plan.Name)
	if err != nil {
		fmt.Fprintln(&out, err)
	}
	text, err := h.run(ctx, nil, "/bin/sh", "-c", "cd /var/log && tail -n 200 *.log")
	if err != nil {
		fmt.Fprintln(&out, err)
	}
	fmt.Fprintln(&out, text)
	for _, cmd := range commands {
		line, _, _ := strings.Cut(cmd.Line, "\n")
		fmt.Fprintf(&out, "%s %s$ %.300s\n", cmd.Time.Format("15:04:05.000"), cmd.User, line)
	}
	return out.String()
}
