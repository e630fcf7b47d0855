package e2e

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/mkesdk/mkesdk/mke"
)

// testMkectl uses mkectl as a person and as a script do.
func testMkectl(t *testing.T, b *bed) {
	b.ensure("h1")
	for _, part := range []struct {
		name string
		run  func(*testing.T, *bed)
	}{
		{"text in a pipe", testText},
		{"json", testJSON},
		{"exit code 1", testExitFailed},
		{"exit code 3", testExitRunbook},
		{"exit code 4 and lock show", testExitLocked},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, b.part(t)) })
	}
}

// ended fails the test unless mkectl ended with that exit code.
func (o outcome) ended(t *testing.T, code int) {
	t.Helper()
	if o.code != code {
		t.Errorf("exit code %d, want %d:\n%s\n%s", o.code, code, o.out, o.err)
	}
}

// says fails the test unless the text says all of that.
func says(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s does not say %q:\n%s", what, part, text)
		}
	}
}

// testText adds a host, and has the lines that a pipe and a log get.
func testText(t *testing.T, b *bed) {
	b.placeK0s("h10")
	w := b.world()
	r := b.run("node", "add", "--hosts-path", b.HostsYAMLOf("h10"))
	r.ended(t, 0)
	if r.err != "" {
		t.Errorf("standard error: %s", r.err)
	}
	if strings.ContainsAny(r.out, "\x1b\r") {
		t.Errorf("a pipe got what is for a terminal: %q", r.out)
	}
	line := regexp.MustCompile(`^\d\d:\d\d:\d\d [ \d]\d/18 [a-z0-9-]+ +\S`)
	seen := map[mke.Stage]bool{}
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	for _, l := range lines {
		if line.MatchString(l) {
			seen[mke.Stage(strings.Fields(l[8:])[1])] = true
		}
	}
	for _, s := range mke.Sequence(mke.Add, "worker") {
		if !seen[s] {
			t.Errorf("no line is about %s:\n%s", s, r.out)
		}
	}
	says(t, "the end", strings.Join(lines[len(lines)-2:], "\n"), "done in ", "1 host through 10.99.0.11 (c1)", "10.99.0.30 (h10)", "scenario 0", "installed", "registered in MkeConfig")
	b.joined(w, "h10")
}

// A result is the last line that -o json writes.
type result struct {
	Kind    string
	Exit    *int
	Result  *mke.Result
	Failure *struct {
		Messages           []string
		Changed, Retryable bool
		Next               string
		Runbook            []struct{ Topic, Text string }
	}
}

// json reads what -o json wrote: an event a line, and the result.
func (o outcome) json(t *testing.T) (events []mke.Event, last result) {
	t.Helper()
	if o.err != "" {
		t.Errorf("standard error beside JSON: %s", o.err)
	}
	lines := strings.Split(strings.TrimSuffix(o.out, "\n"), "\n")
	for i, line := range lines {
		var e mke.Event
		into := any(&e)
		if i == len(lines)-1 {
			into = &last
		}
		if err := json.Unmarshal([]byte(line), into); err != nil {
			t.Fatalf("line %d of %d: %v: %s", i+1, len(lines), err, line)
		}
		if i < len(lines)-1 {
			events = append(events, e)
		}
	}
	if last.Kind != "result" || last.Exit == nil || *last.Exit != o.code {
		t.Fatalf("the last line is no result with exit %d:\n%s", o.code, o.out)
	}
	return events, last
}

// testJSON has what a script gets: of an addition, of a refusal, and of a wrong command line.
func testJSON(t *testing.T, b *bed) {
	r := b.run("-o", "json", "node", "add", "--hosts-path", b.HostsYAMLOf("h1", "h10"))
	r.ended(t, 0)
	events, last := r.json(t)
	if last.Failure != nil || last.Result == nil || len(last.Result.Hosts) != 2 || last.Result.Hosts[1].Scenario != "2" || last.Result.Helper.Node != "c1" {
		t.Errorf("result: %+v", last)
	}
	n := 0
	for _, e := range events {
		if e.Time.IsZero() || e.Kind == "" || e.Stage == "" || e.Of != 18 || e.N < n {
			t.Errorf("event: %+v", e)
		}
		n = e.N
	}
	if n != 18 {
		t.Errorf("the last event is of stage %d", n)
	}

	r = b.run("-o", "json", "node", "add", "--hosts-path", "/nowhere/hosts.yaml")
	r.ended(t, 2)
	if events, last := r.json(t); len(events) > 0 || last.Failure == nil || len(last.Failure.Messages) != 1 || last.Failure.Changed || last.Failure.Retryable {
		t.Errorf("of a wrong command line: %s", r.out)
	}
}

// testExitFailed cannot reach two hosts: both are named, and it may be repeated.
func testExitFailed(t *testing.T, b *bed) {
	for _, name := range []string{"h3", "h9"} {
		b.Host(name).Exec("systemctl", "stop", "ssh")
		defer b.Host(name).Exec("systemctl", "start", "ssh")
	}
	w := b.world("h1", "h3", "h9", "c1")
	r := b.run("node", "add", "--hosts-path", b.HostsYAMLOf("h3", "h1", "h9"))
	r.ended(t, 1)
	says(t, "the error", r.err, "2 problems", "10.99.0.23", "10.99.0.29", "connection refused", "nothing was changed", "may be repeated as it is")
	b.unchanged(w, mkectlAgent)
}

// testExitLocked has another operation hold the node, and looks at who does.
func testExitLocked(t *testing.T, b *bed) {
	give := b.hold("h1", "elsewhere")
	w := b.world("h1", "c1")
	r := b.run("node", "add", "--hosts-path", b.HostsYAMLOf("h1"))
	r.ended(t, 4)
	says(t, "the error", r.err, "mke-node-h1", "ops@elsewhere pid 7", "10.99.0.99", "nothing was changed", "mkectl lock show")

	r = b.run("lock", "show")
	r.ended(t, 0)
	says(t, "lock show", r.out, "mke-node-elsewhere", "mke-node-h1", "node-add", "adding", "10.99.0.99", "ops@elsewhere pid 7")
	r = b.run("lock", "show", "-o", "json")
	r.ended(t, 0)
	var shown struct {
		Kind  string
		Locks []mke.LockInfo
	}
	if err := json.Unmarshal([]byte(r.out), &shown); err != nil {
		t.Errorf("lock show -o json: %v: %s", err, r.out)
	}
	if shown.Kind != "locks" || len(shown.Locks) != 2 || shown.Locks[1].Lease != "mke-node-h1" || shown.Locks[1].Client != "ops@elsewhere pid 7" {
		t.Errorf("lock show -o json: %+v", shown)
	}
	b.unchanged(w, mkectlAgent)

	give()
	r = b.run("lock", "show")
	r.ended(t, 0)
	says(t, "lock show", r.out, "no operation holds a lock")
}
