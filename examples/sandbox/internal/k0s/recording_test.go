package k0s

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// recorded is one command of a recording: what a real k0s printed, on either stream, and its exit
// status where that was noted.
type recorded struct {
	command string
	lines   []string
	status  string // "" if it was not noted
}

// recording reads the commands of a shell trace. Output and trace came through two streams, so the
// lines of a command stand in no certain order to "+ echo" and to each other.
func recording(t *testing.T, name string) []recorded {
	t.Helper()
	var out []recorded
	for line := range strings.Lines(readRecording(t, name)) {
		line = strings.TrimRight(line, "\n")
		if command, ok := strings.CutPrefix(line, "+ "); ok {
			if strings.HasPrefix(command, "k0s ") || strings.HasPrefix(command, "ls ") {
				out = append(out, recorded{command: command})
			}
			continue
		}
		if len(out) == 0 {
			continue
		}
		last := &out[len(out)-1]
		if rc, ok := strings.CutPrefix(line, "rc="); ok {
			last.status = rc
		} else if line != "" {
			last.lines = append(last.lines, line)
		}
	}
	return out
}

func readRecording(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "recordings", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// block is the part of a recording from a line to another, both included.
func block(t *testing.T, name, first, last string) string {
	t.Helper()
	text := readRecording(t, name)
	_, after, ok := strings.Cut(text, "\n"+first+"\n")
	if !ok {
		t.Fatalf("%s has no line %q", name, first)
	}
	body, _, ok := strings.Cut(after, "\n"+last+"\n")
	if !ok {
		t.Fatalf("%s has no line %q", name, last)
	}
	return first + "\n" + body + "\n" + last + "\n"
}

// chance is what differs between any two runs.
var chance = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`time="[^"]*"`), `time="…"`},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "<time>"},
	{regexp.MustCompile(`"[0-9a-f]{32}"`), `"<invocation>"`},
	{regexp.MustCompile(`shutdown-on-leave: [0-9a-f]{32}`), "shutdown-on-leave: <invocation>"},
	{regexp.MustCompile(`uid: [0-9a-f-]{36}`), "uid: <uid>"},
	{regexp.MustCompile(`resourceVersion: "\d+"`), `resourceVersion: "<n>"`},
	{regexp.MustCompile(`Process ID: \d+`), "Process ID: <pid>"},
	{regexp.MustCompile(`"Pid": \d+`), `"Pid": <pid>`},
}

func normal(s string) string {
	for _, c := range chance {
		s = c.what.ReplaceAllString(s, c.with)
	}
	return s
}

// compare holds what a command printed, on both streams together, to what the real one did.
func (r recorded) compare(t *testing.T, got reply) {
	t.Helper()
	var lines []string
	for line := range strings.Lines(got.Stdout + got.Stderr) {
		if line = strings.TrimRight(line, "\n"); line != "" {
			lines = append(lines, normal(line))
		}
	}
	want := make([]string, len(r.lines))
	for i, line := range r.lines {
		want[i] = normal(line)
	}
	if a, b := slices.Sorted(slices.Values(lines)), slices.Sorted(slices.Values(want)); !slices.Equal(a, b) {
		t.Errorf("%s\n%s", r.command, difference(want, lines))
	}
	if r.status != "" && r.status != fmt.Sprint(got.Code) {
		t.Errorf("%s: status %d, the real one ends with %s", r.command, got.Code, r.status)
	}
}

// difference shows the lines that only one of two texts has.
func difference(want, got []string) string {
	var b strings.Builder
	for _, l := range want {
		if !slices.Contains(got, l) {
			fmt.Fprintf(&b, "  only the real k0s: %s\n", l)
		}
	}
	for _, l := range got {
		if !slices.Contains(want, l) {
			fmt.Fprintf(&b, "  only the stand-in: %s\n", l)
		}
	}
	if b.Len() == 0 {
		fmt.Fprintf(&b, "  the same lines, some more often: %d and %d", len(want), len(got))
	}
	return b.String()
}

// listing are files as `stat` shows them, without sizes: path to mode and owner.
func listing(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 3 || len(f[0]) != 10 || !strings.HasPrefix(f[len(f)-1], "/") || f[1] == "1" {
			continue
		}
		out[f[len(f)-1]] = f[0] + " " + f[1]
	}
	return out
}
