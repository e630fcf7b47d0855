package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/etcdverify"
	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/mke"
)

func TestMessages(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	h1 := mke.HostRef{Address: "h1"}
	for _, c := range []struct {
		err  error
		want []string
	}{
		{a, []string{"a"}},
		{errors.Join(a, b), []string{"a", "b"}},
		{fmt.Errorf("%w: %w", mke.ErrInvalid, errors.Join(a, b)), []string{"invalid input: a", "invalid input: b"}},
		{errors.Join(blame(mke.Facts, h1, a), blame(mke.Facts, mke.HostRef{}, errors.Join(a, b))),
			[]string{"node-add: facts: h1: a", "node-add: facts: a", "node-add: facts: b"}},
		{fmt.Errorf("%w, so it ended", errors.Join(a, b)), []string{"a\nb, so it ended"}},
		{blame(mke.Preflight, mke.HostRef{}, &mke.PreflightError{Findings: []hosts.Finding{
			{Host: "h1", ID: "cpu", Want: "2 cores", Got: "1"}, {Host: "h2", ID: "os", Want: "Ubuntu", Got: "Debian"},
		}}), []string{"node-add: preflight: h1: cpu: want 2 cores, got 1", "node-add: preflight: h2: os: want Ubuntu, got Debian"}},
	} {
		if got := messages(c.err); !slices.Equal(got, c.want) {
			t.Errorf("messages(%q) = %q, want %q", c.err, got, c.want)
		}
	}
}

func TestExitCode(t *testing.T) {
	runbook := &etcdverify.Error{Topic: etcdverify.TopicNoQuorum}
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, exitDone},
		{errors.New("connection refused"), exitFailed},
		{blame(mke.Reachability, mke.HostRef{}, mke.ErrStopped), exitFailed},
		{blame(mke.HostState, mke.HostRef{}, &mke.HostError{Cause: mke.ErrOtherCluster}), exitFailed},
		{&usageError{"mkectl", errors.New("unknown flag")}, exitUsage},
		{fmt.Errorf("node-add: %w: two hosts", mke.ErrInvalid), exitUsage},
		{blame(mke.EtcdState, mke.HostRef{}, runbook), exitRunbook},
		{blame(mke.OperationLock, mke.HostRef{}, &mke.LockedError{}), exitLocked},
		{errors.Join(&mke.LockedError{}, runbook), exitRunbook},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("exitCode(%v) = %d, want %d", c.err, got, c.want)
		}
	}
}

// TestNext says what a person does after each kind of failure: repeat it only
// where that is sound.
func TestNext(t *testing.T) {
	h1 := mke.HostRef{Address: "10.0.0.21", Node: "h1"}
	for _, c := range []struct {
		name    string
		o       outcome
		want    []string
		wantNot []string
	}{
		{
			"a failure in the checks",
			outcome{result: &mke.Result{}, err: blame(mke.Reachability, h1, errors.New("connection refused"))},
			[]string{"mkectl node add: node-add: reachability: 10.0.0.21 (h1): connection refused\n", "nothing was changed", "may be repeated as it is"},
			[]string{"problems"},
		},
		{
			"a failure later, with something left",
			outcome{result: &mke.Result{Left: []string{"a token: k0s token invalidate x"}}, changed: true, err: blame(mke.WorkerBootstrap, h1, errors.New("exit status 1"))},
			[]string{"left behind, to be cleaned up by hand:\n  a token: k0s token invalidate x\n", "may be repeated as it is"},
			[]string{"nothing was changed"},
		},
		{
			"two hosts that are refused",
			outcome{result: &mke.Result{}, err: errors.Join(
				blame(mke.HostState, h1, &mke.HostError{Scenario: hosts.Scenario{Row: "11", Name: "belongs to another cluster"}, Cause: mke.ErrOtherCluster}),
				blame(mke.HostState, h1, &mke.HostError{Scenario: hosts.Scenario{Row: "12", Name: "installed for the other role"}}))},
			[]string{"mkectl node add: 2 problems:\n  node-add: host-state: 10.0.0.21 (h1): refused: ", "ends the same way until what is named above has been mended"},
			[]string{"may be repeated"},
		},
		{
			"etcd",
			outcome{result: &mke.Result{}, err: blame(mke.EtcdState, mke.HostRef{}, &etcdverify.Error{Host: "c1", Topic: etcdverify.TopicNoQuorum, Detail: "no leader"})},
			[]string{"do not repeat it", "runbook topic no-quorum\n\n# "},
			[]string{"may be repeated"},
		},
		{
			"a lock",
			outcome{result: &mke.Result{}, err: blame(mke.OperationLock, mke.HostRef{}, &mke.LockedError{Lease: "mke-node-h1"})},
			[]string{"once the other operation has ended", "mkectl lock show"},
			nil,
		},
		{
			"a stale lock",
			outcome{result: &mke.Result{}, err: blame(mke.OperationLock, mke.HostRef{}, &mke.LockedError{Lease: "mke-node-h1", Lock: mke.LockInfo{Stale: true}})},
			[]string{"if its client is dead, repeat it with --lease-adopt-stale"},
			[]string{"once the other operation has ended"},
		},
		{
			"bad input that only the SDK sees",
			outcome{result: &mke.Result{}, err: fmt.Errorf("node-add: %w: two hosts are one", mke.ErrInvalid)},
			[]string{"mend what is named above"},
			[]string{"may be repeated"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			reportError(&b, "mkectl node add", c.o)
			for _, want := range c.want {
				if !strings.Contains(b.String(), want) {
					t.Errorf("it does not say %q, but:\n%s", want, b.String())
				}
			}
			for _, not := range c.wantNot {
				if strings.Contains(b.String(), not) {
					t.Errorf("it says %q:\n%s", not, b.String())
				}
			}
		})
	}
}

func TestReportResult(t *testing.T) {
	var b bytes.Buffer
	reportResult(&b, mke.Result{
		Helper: mke.HostRef{Address: "10.0.0.1", Node: "c1"},
		Hosts: []mke.HostResult{
			{Host: mke.HostRef{Address: "10.0.0.21", Node: "h1"}, Scenario: "1", Name: "clean host", Did: []string{"installed", "registered in MkeConfig"}},
			{Host: mke.HostRef{Address: "10.0.0.22", Node: "h2"}, Scenario: "2", Name: "part of this cluster, node ready"},
		},
		OutOfScope: []mke.HostRef{{Address: "10.0.0.12"}},
	}, 83*time.Second)
	want := `
done in 1m23s: 2 hosts through 10.0.0.1 (c1)
  10.0.0.21 (h1)  clean host (scenario 1)                        installed, registered in MkeConfig
  10.0.0.22 (h2)  part of this cluster, node ready (scenario 2)  nothing had to be done
  10.0.0.12       out of scope                                   left alone
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// TestJSONOutcome pins what programs read.
func TestJSONOutcome(t *testing.T) {
	err := blame(mke.EtcdState, mke.HostRef{}, &etcdverify.Error{Host: "c1", Topic: etcdverify.TopicNoQuorum, Detail: "no leader"})
	data, jsonErr := json.Marshal(jsonOutcome(outcome{result: &mke.Result{Hosts: []mke.HostResult{{}}}, err: err}))
	if jsonErr != nil {
		t.Fatal(jsonErr)
	}
	var got struct {
		Kind    string
		Exit    int
		Result  *mke.Result
		Failure struct {
			Messages  []string
			Changed   *bool
			Retryable *bool
			Next      string
			Runbook   []struct{ Topic, Text string }
		}
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	e := got.Failure
	if got.Kind != "result" || got.Exit != exitRunbook || got.Result == nil || len(e.Messages) != 1 || e.Next == "" ||
		e.Changed == nil || *e.Changed || e.Retryable == nil || *e.Retryable ||
		len(e.Runbook) != 1 || e.Runbook[0].Topic != "no-quorum" || !strings.HasPrefix(e.Runbook[0].Text, "# ") {
		t.Errorf("got %s", data)
	}
}

// TestRunbookOnce prints a section once, however many errors name it.
func TestRunbookOnce(t *testing.T) {
	a := &etcdverify.Error{Topic: etcdverify.TopicNoQuorum}
	b := &etcdverify.Error{Topic: etcdverify.TopicAlarmNoSpace}
	var got []etcdverify.Topic
	for _, s := range runbook(errors.Join(blame(mke.EtcdState, mke.HostRef{}, errors.Join(a, b)), a)) {
		got = append(got, s.Topic)
	}
	if want := []etcdverify.Topic{etcdverify.TopicNoQuorum, etcdverify.TopicAlarmNoSpace}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
