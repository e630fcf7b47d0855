package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/mke"
)

// TestHelpStages holds the help to what runs.
func TestHelpStages(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &out, stderr: &out, getenv: func(string) string { return "" }}
	if code := a.run(t.Context(), []string{"node", "add", "--help"}); code != exitDone {
		t.Fatalf("exit code %d: %s", code, out.String())
	}
	_, list, _ := strings.Cut(out.String(), "The stages, in order:\n\n")
	list, _, _ = strings.Cut(list, "\n\n")
	var got, want []string
	for line := range strings.Lines(list) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	for i, s := range mke.Sequence(mke.Add, hosts.Worker) {
		want = append(want, fmt.Sprint(i+1, " ", s))
	}
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("the help has\n%q\nwhat runs is\n%q", got, want)
	}
}

// TestLater wants no flag that is there to be announced as coming later.
func TestLater(t *testing.T) {
	c := (&app{}).nodeAdd()
	for name, why := range later {
		if c.Flags().Lookup(name) != nil {
			t.Errorf("--%s is there, and yet: %s", name, why)
		}
	}
}
