package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mkesdk/mkesdk/etcdverify"
	"github.com/mkesdk/mkesdk/mke"
)

// The exit codes: one for each thing that a person does next.
const (
	exitDone    = 0
	exitFailed  = 1 // look at the message, then perhaps again
	exitUsage   = 2 // mend the command line or the hosts file
	exitRunbook = 3 // follow the runbook
	exitLocked  = 4 // wait for the other operation
)

// An outcome is how a command ended.
type outcome struct {
	result  *mke.Result // nil if no operation was begun
	changed bool        // whether a stage began that may change something
	took    time.Duration
	err     error
}

func exitCode(err error) int {
	if err == nil {
		return exitDone
	}
	if _, ok := errors.AsType[*etcdverify.Error](err); ok {
		return exitRunbook
	}
	if errors.Is(err, mke.ErrLocked) {
		return exitLocked
	}
	if _, ok := errors.AsType[*usageError](err); ok || errors.Is(err, mke.ErrInvalid) {
		return exitUsage
	}
	return exitFailed
}

// report says how a command ended and sets the exit code.
func (a *app) report(command string, o outcome) {
	a.exit = exitCode(o.err)
	if a.flags.output == "json" {
		_ = json.NewEncoder(a.stdout).Encode(jsonOutcome(o)) // whoever reads has gone: there is nobody left to tell
		return
	}
	if o.result != nil && o.err == nil {
		reportResult(a.stdout, *o.result, o.took)
	}
	if o.err != nil {
		reportError(a.stderr, command, o)
	}
}

// reportResult says what was found on each host and what was done there.
func reportResult(w io.Writer, r mke.Result, took time.Duration) {
	fmt.Fprintf(w, "\ndone in %s: %s through %s\n", short(took), count(len(r.Hosts), "host"), r.Helper)
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, h := range r.Hosts {
		did := "nothing had to be done"
		if len(h.Did) > 0 {
			did = strings.Join(h.Did, ", ")
		}
		fmt.Fprintf(tab, "  %s\t%s (scenario %s)\t%s\n", h.Host, h.Name, h.Scenario, did)
	}
	for _, h := range r.OutOfScope {
		fmt.Fprintf(tab, "  %s\tout of scope\tleft alone\n", h)
	}
	_ = tab.Flush()
}

// reportError says what went wrong, a line for each problem, what is left to be
// cleaned up, and what to do next.
func reportError(w io.Writer, command string, o outcome) {
	problems := messages(o.err)
	if len(problems) == 1 {
		fmt.Fprintf(w, "%s: %s\n", command, indent(problems[0]))
	} else {
		fmt.Fprintf(w, "%s: %d problems:\n", command, len(problems))
		for _, p := range problems {
			fmt.Fprintf(w, "  %s\n", indent(p))
		}
	}
	if o.result != nil {
		reportDone(w, *o.result)
		if len(o.result.Left) > 0 {
			fmt.Fprintln(w, "left behind, to be cleaned up by hand:")
			for _, l := range o.result.Left {
				fmt.Fprintf(w, "  %s\n", indent(l))
			}
		}
		if !o.changed {
			fmt.Fprintln(w, "nothing was changed, on no host and not in the cluster")
		}
	}
	fmt.Fprintln(w, next(o))
	for _, s := range runbook(o.err) {
		fmt.Fprintf(w, "\nrunbook topic %s\n\n%s", s.Topic, s.Text)
	}
}

// reportDone says what was done on each host before it went wrong.
func reportDone(w io.Writer, r mke.Result) {
	first := true
	for _, h := range r.Hosts {
		if len(h.Did) == 0 {
			continue
		}
		if first {
			fmt.Fprintln(w, "done before that:")
			first = false
		}
		fmt.Fprintf(w, "  %s: %s\n", h.Host, strings.Join(h.Did, ", "))
	}
}

// next says what a person does after o.
func next(o outcome) string {
	switch exitCode(o.err) {
	case exitRunbook:
		return "do not repeat it: follow the runbook below first"
	case exitLocked:
		if e, ok := errors.AsType[*mke.LockedError](o.err); ok && e.Lock.Stale {
			return "if its client is dead, repeat it with --lease-adopt-stale; mkectl lock show tells the other way"
		}
		return "repeat it once the other operation has ended; mkectl lock show tells who holds what"
	case exitUsage:
		if e, ok := errors.AsType[*usageError](o.err); ok && e.command != "" {
			return "see " + e.command + " --help"
		}
		return "mend what is named above, then repeat it"
	}
	if mke.Retryable(o.err) {
		return "the same command may be repeated as it is"
	}
	return "repeating it ends the same way until what is named above has been mended"
}

// jsonResult is the last line of -o json.
type jsonResult struct {
	Kind   string      `json:"kind"` // "result"
	Exit   int         `json:"exit"`
	Result *mke.Result `json:"result,omitempty"`
	// Failure is why, if it failed. An event has its "error" as text.
	Failure *jsonError `json:"failure,omitempty"`
}

type jsonError struct {
	// Messages are the problems, one each.
	Messages []string `json:"messages"`
	// Changed reports that a stage began that may change something.
	Changed bool `json:"changed"`
	// Retryable reports that making the same call again is a sound answer.
	Retryable bool      `json:"retryable"`
	Next      string    `json:"next"`
	Runbook   []section `json:"runbook,omitempty"`
}

// A section of the runbook.
type section struct {
	Topic etcdverify.Topic `json:"topic"`
	Text  string           `json:"text"` // Markdown
}

// runbook returns the sections that err asks for, each once.
func runbook(err error) (sections []section) {
	if err == nil {
		return nil
	}
	each(err, func(e error) {
		found, ok := e.(*etcdverify.Error)
		if !ok || slices.ContainsFunc(sections, func(s section) bool { return s.Topic == found.Topic }) {
			return
		}
		text, _ := etcdverify.Runbook(found.Topic)
		sections = append(sections, section{found.Topic, text})
	})
	return sections
}

func jsonOutcome(o outcome) jsonResult {
	r := jsonResult{Kind: "result", Exit: exitCode(o.err)}
	if o.result != nil && len(o.result.Hosts) > 0 { // none: it ended before it looked at one
		r.Result = o.result
	}
	if o.err == nil {
		return r
	}
	r.Failure = &jsonError{
		Messages: messages(o.err), Changed: o.changed, Next: next(o), Runbook: runbook(o.err),
		Retryable: exitCode(o.err) != exitUsage && mke.Retryable(o.err),
	}
	return r
}

// indent sets the further lines of a message apart from the next message.
func indent(message string) string {
	return strings.ReplaceAll(strings.TrimSpace(message), "\n", "\n      ")
}

func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// short is a duration to the tenth of a second, or to the second if it is long.
func short(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
