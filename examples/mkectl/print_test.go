package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/mke"
)

// story is an addition of two workers, shortened, with everything in it that
// looks different on a screen.
func story() []mke.Event {
	h1, h2 := mke.HostRef{Address: "10.0.0.21", Node: "h1"}, mke.HostRef{Address: "10.0.0.22", Node: "h2"}
	both := []mke.HostRef{h1, h2}
	deadline := time.Date(2026, 11, 30, 20, 10, 0, 0, time.UTC)
	const mib = 1 << 20
	events := []mke.Event{
		{Kind: mke.Started, Stage: mke.Reachability, N: 1, Hosts: both},
		{Kind: mke.Progress, Stage: mke.Reachability, N: 1, Message: "helper controller: 10.0.0.1 (c1)"},
		{Kind: mke.Finished, Stage: mke.Reachability, N: 1, ElapsedMS: 412},
		{Kind: mke.Started, Stage: mke.Preflight, N: 4, Hosts: both},
		{Kind: mke.Progress, Stage: mke.Preflight, N: 4, Host: &h2, Warning: true, Message: "swap: want off, got on"},
		{Kind: mke.Finished, Stage: mke.Preflight, N: 4, ElapsedMS: 31},
		{Kind: mke.Started, Stage: mke.EtcdState, N: 7},
		{Kind: mke.Finished, Stage: mke.EtcdState, N: 7, ElapsedMS: 100},
		{Kind: mke.Skipped, Stage: mke.RegistryCA, N: 9, Message: "no host is to be installed with a registry CA of its own"},
		{Kind: mke.Started, Stage: mke.K0sBinary, N: 10, Hosts: both},
		{Kind: mke.Progress, Stage: mke.K0sBinary, N: 10, Host: &h1, Message: "k0s binary", Bytes: 10 * mib, Total: 200 * mib},
		{Kind: mke.Progress, Stage: mke.K0sBinary, N: 10, Host: &h2, Message: "k0s binary", Bytes: 120 * mib, Total: 200 * mib},
		{Kind: mke.Progress, Stage: mke.K0sBinary, N: 10, Host: &h1, Message: "k0s binary", Bytes: 200 * mib, Total: 200 * mib},
		{Kind: mke.Progress, Stage: mke.K0sBinary, N: 10, Host: &h1, Done: 1, Message: "done"},
		{Kind: mke.Progress, Stage: mke.K0sBinary, N: 10, Host: &h2, Done: 2, Message: "done"},
		{Kind: mke.Finished, Stage: mke.K0sBinary, N: 10, ElapsedMS: 12345},
		{Kind: mke.Started, Stage: mke.Verification, N: 16, Hosts: both},
		{Kind: mke.Progress, Stage: mke.Verification, N: 16, Host: &h2, Attempt: 3, Deadline: &deadline, Message: "waiting for node Ready: node h2 is not Ready: container runtime network not ready, which is said at such length that no line of a terminal holds it"},
		{Kind: mke.Failed, Stage: mke.Verification, N: 16, ElapsedMS: 600000, Error: "10.0.0.22 (h2): timed out\nand a second line"},
	}
	at := time.Date(2026, 11, 30, 20, 0, 0, 0, time.UTC)
	for i := range events {
		events[i].Of = 18
		events[i].Time = at.Add(time.Duration(i) * time.Second)
	}
	return events
}

func TestPrinters(t *testing.T) {
	var clock time.Time
	printers := map[string]func(*bytes.Buffer) printer{
		"plain.txt": func(b *bytes.Buffer) printer { return newPlain(b) },
		"json.txt":  func(b *bytes.Buffer) printer { return newJSON(b) },
		"live.txt": func(b *bytes.Buffer) printer {
			return &livePrinter{w: b, width: func() int { return 100 }, now: func() time.Time { return clock }, stop: make(chan struct{})}
		},
	}
	for name, printerFor := range printers {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			p := printerFor(&b)
			for _, e := range story() {
				clock = e.Time.Add(2 * time.Second)
				p.event(e)
			}
			p.close()
			// What a terminal would draw over stands in lines of its own here.
			golden(t, name, strings.ReplaceAll(b.String(), "\r\x1b[K", "  <drawn over>\n"))
		})
	}
}

// TestAbove makes sure that what is written meanwhile is not drawn over.
func TestAbove(t *testing.T) {
	var b bytes.Buffer
	at := time.Date(2026, 11, 30, 20, 0, 0, 0, time.UTC)
	p := &livePrinter{w: &b, width: func() int { return 60 }, now: func() time.Time { return at }, stop: make(chan struct{})}
	p.event(mke.Event{Time: at, Kind: mke.Started, Stage: mke.Verification, N: 16, Of: 18})
	b.Reset()
	w := aboveWriter{p, &b}
	if _, err := w.Write([]byte("a line of the log\n")); err != nil {
		t.Fatal(err)
	}
	before, after, ok := strings.Cut(b.String(), "a line of the log\n")
	if !ok || before != "\r\x1b[K" || !strings.HasPrefix(after, "..   16/18 verification") {
		t.Errorf("got %q", b.String())
	}
}

func TestColour(t *testing.T) {
	var b bytes.Buffer
	p := &livePrinter{w: &b, width: func() int { return 60 }, color: true, now: time.Now, stop: make(chan struct{})}
	p.event(mke.Event{Kind: mke.Skipped, Stage: mke.Uncordon, N: 15, Of: 18, Message: "no host is"})
	if want := "\x1b[2m-   \x1b[0m 15/18"; !strings.HasPrefix(b.String(), want) {
		t.Errorf("got %q, want it to begin with %q", b.String(), want)
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		line string
		most int
		want string
	}{
		{"short", 10, "short"},
		{"exactly", 7, "exactly"},
		{"too long", 3, "too"},
		{"äöü", 2, "äö"},
		{"one\ntwo", 10, "one"},
		{"no width known", 0, "no width known"},
	} {
		if got := clip(c.line, c.most); got != c.want {
			t.Errorf("clip(%q, %d) = %q, want %q", c.line, c.most, got, c.want)
		}
	}
}

// golden compares got with a file below testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
