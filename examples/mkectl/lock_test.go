package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/mke"
)

func TestPrintLocks(t *testing.T) {
	now := time.Date(2026, 11, 30, 20, 0, 50, 0, time.UTC)
	since := now.Add(-5 * time.Minute)
	live := mke.LockInfo{
		Lease: "mke-node-h1", Operation: "node-add", State: "adding", Scope: "worker", Hosts: []string{"10.0.0.21"},
		Client: "ann@desk pid 7", Started: since, Renewed: now, Expires: now.Add(time.Minute),
	}
	dead := live
	dead.Lease, dead.Hosts, dead.Expires, dead.Stale = "mke-node-h2", nil, now.Add(-3*time.Minute), true

	var b bytes.Buffer
	printLocks(&b, []mke.LockInfo{live, dead}, now)
	want := `LEASE        OPERATION  STATE   HOSTS      BY              SINCE                 EXPIRES   STALE
mke-node-h1  node-add   adding  10.0.0.21  ann@desk pid 7  2026-11-30T19:55:50Z  in 1m0s   no
mke-node-h2  node-add   adding  -          ann@desk pid 7  2026-11-30T19:55:50Z  3m0s ago  yes
`
	got := b.String()
	if !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if !strings.Contains(got, "kubectl -n mke delete lease mke-node-h2\n") || !strings.Contains(got, "--lease-adopt-stale") {
		t.Errorf("it does not say how to clear the stale one alone:\n%s", got)
	}

	b.Reset()
	printLocks(&b, []mke.LockInfo{live}, now)
	if strings.Contains(b.String(), "delete") {
		t.Errorf("it says how to break a lock that is alive:\n%s", b.String())
	}

	b.Reset()
	printLocks(&b, nil, now)
	if want := "no operation holds a lock\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
