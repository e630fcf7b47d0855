package mke_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/mke"
	"github.com/mkesdk/mkesdk/mke/internal/sim"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// TestTranscripts runs every documented scenario: hosts and cluster as input, what
// happens and which commands change a host as output. A file is a sequence of
// blocks, each of which is directives, a line "----", and what they give.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { replay(t, name) })
		})
	}
}

func replay(t *testing.T, name string) {
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	w := &stage{t: t, world: sim.New(t), seen: map[string]int{}}
	var out strings.Builder
	for block := range strings.SplitSeq(strings.TrimRight(string(data), "\n"), "\n\n") {
		in, want, ok := strings.Cut(block, "\n----")
		if !ok {
			if !strings.HasPrefix(block, "#") {
				t.Fatalf("%s: a block without ----: %q", name, block)
			}
			fmt.Fprintf(&out, "%s\n\n", block) // a comment
			continue
		}
		got := w.block(in)
		if want = strings.TrimPrefix(want, "\n"); !*update && got != want {
			t.Errorf("%s:\n%s\n---- got\n%s\n---- want\n%s", name, in, got, want)
		}
		fmt.Fprintf(&out, "%s\n----\n%s\n\n", in, got)
	}
	w.unlock()
	if *update {
		if err := os.WriteFile(name, []byte(strings.ReplaceAll(strings.TrimRight(out.String(), "\n")+"\n", "----\n\n\n", "----\n\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A stage is what a transcript plays on.
type stage struct {
	t     *testing.T
	world *sim.World
	last  mke.Options
	seen  map[string]int // how much of each log was shown
	held  *mke.Held
}

func (s *stage) block(in string) string {
	var out strings.Builder
	for line := range strings.Lines(in) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		switch words[0] {
		case "host":
			s.world.AddHost(words[1], words[2]).Set(s.t, words[3:]...)
		case "node":
			s.node(words[1], words[2:])
		case "add":
			s.last = s.options(words[1:])
			s.run(&out)
		case "again":
			s.run(&out)
		case "busy":
			s.world.SetBusy(strings.Join(words[1:], " "))
		case "locked":
			s.lock(words[1:])
		case "unlocked":
			s.unlock()
		case "unreachable":
			s.world.HostNamed(words[1]).Unreachable = true
		case "no-artifact":
			s.world.RemoveArtifact()
		case "cluster":
			s.cluster(&out)
		default:
			s.t.Fatalf("no directive %q", words[0])
		}
	}
	return strings.TrimRight(out.String(), "\n")
}

// locked [NODE...] is another operation that holds the lock of nodes, or without
// any the cluster-wide one.
func (s *stage) lock(nodes []string) {
	held, err := mke.AcquireLock(s.t.Context(), s.world.Cluster().Leases, mke.LockRequest{
		Operation: mke.Add, Scope: hosts.Worker, Nodes: nodes, Hosts: []string{"10.0.0.77"},
		Lease: mke.Lease{TTL: time.Minute, Renew: 20 * time.Second}, Client: "ops@bastion pid 7",
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.held = held
}

func (s *stage) unlock() {
	if s.held == nil {
		return
	}
	if err := s.held.Release(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.held = nil
}

// node NAME ready|notready [cordoned] [machine=ID] [address=IP]
func (s *stage) node(name string, words []string) {
	n := mke.Node{Name: name, ReadyReason: "NodeStatusUnknown: kubelet stopped posting node status"}
	if h := s.world.HostNamed(name); h != nil {
		n.MachineID, n.Addresses = h.MachineID(), []string{h.Address}
	}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "ready":
			n.Ready, n.ReadyReason = true, ""
		case "notready":
		case "cordoned":
			n.Cordoned = true
		case "machine":
			n.MachineID = value
		case "address":
			n.Addresses = []string{value}
		default:
			s.t.Fatalf("node: no %q", word)
		}
	}
	s.world.AddNode(n)
}

// add ADDRESS[=FLAG,...] ...
func (s *stage) options(words []string) mke.Options {
	o := mke.Options{Cluster: s.world.Cluster()}
	for _, word := range words {
		address, flags, _ := strings.Cut(word, "=")
		spec := hosts.Spec{Role: hosts.Worker, SSH: hosts.SSH{Address: address}}
		if flags != "" {
			spec.InstallFlags = strings.Split(flags, ";")
		}
		o.Hosts = append(o.Hosts, spec)
	}
	return o
}

// run makes the call and writes what happens: a line for each stage, below it
// what it reports, and the commands that change a host, host by host.
func (s *stage) run(out *strings.Builder) {
	var notes []string
	o := s.last
	o.OnEvent = func(e mke.Event) {
		head := fmt.Sprintf("%2d/%d %s", e.N, e.Of, e.Stage)
		switch e.Kind {
		case mke.Started:
			notes = nil
			fmt.Fprintf(out, "%s%s\n", head, names(e.Hosts))
		case mke.Skipped:
			fmt.Fprintf(out, "%s: skipped: %s\n", head, e.Message)
		case mke.Progress:
			if e.Done == 0 && e.Total == 0 {
				notes = append(notes, note(e))
			}
		case mke.Finished, mke.Failed:
			s.flush(out, notes)
			if e.Kind == mke.Failed {
				fmt.Fprintf(out, "      FAILED\n")
			}
		}
	}
	result, err := mke.AddNodes(s.t.Context(), o)
	if err != nil {
		fmt.Fprintf(out, "error: %s\nretryable: %t\n", strings.ReplaceAll(err.Error(), "\n", "\n       "), mke.Retryable(err))
		if errors.Is(err, mke.ErrOtherCluster) {
			fmt.Fprintln(out, "is: ErrOtherCluster")
		}
	}
	for _, h := range result.Hosts {
		did := "nothing"
		if len(h.Did) > 0 {
			did = strings.Join(h.Did, ", ")
		}
		fmt.Fprintf(out, "%s: scenario %s: %s\n", h.Host, h.Scenario, did)
	}
	for _, left := range result.Left {
		fmt.Fprintf(out, "left: %s\n", left)
	}
}

func (s *stage) flush(out *strings.Builder, notes []string) {
	slices.Sort(notes) // hosts are worked on side by side
	for _, n := range notes {
		fmt.Fprintf(out, "      %s\n", n)
	}
	for _, h := range s.world.Hosts() {
		log := h.Log()
		added := log[s.seen[h.Address]:]
		if h.Name == "c1" {
			slices.Sort(added) // the helper works for several hosts at once
		}
		for _, c := range added {
			fmt.Fprintf(out, "      %s$ %s\n", h.Name, c)
		}
		s.seen[h.Address] = len(log)
	}
	writes := s.world.Writes()
	for _, w := range writes[min(s.seen["api"], len(writes)):] {
		fmt.Fprintf(out, "      api: %s\n", w)
	}
	s.seen["api"] = len(writes)
}

// cluster prints what an operation must not leave behind, and the nodes.
func (s *stage) cluster(out *strings.Builder) {
	fmt.Fprintf(out, "locks: %d, join tokens: %d, token files: %d\n", len(s.world.Locks()), s.world.Tokens(), s.world.TokenFiles())
	nodes, err := s.world.Cluster().Nodes.List(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, n := range nodes {
		fmt.Fprintf(out, "node %s ready=%t cordoned=%t\n", n.Name, n.Ready, n.Cordoned)
	}
	config, err := s.world.Cluster().Config.Get(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, h := range config.Hosts {
		fmt.Fprintf(out, "MkeConfig lists %s as %s\n", h.SSH.Address, h.Role)
	}
}

func names(refs []mke.HostRef) string {
	var s string
	for _, r := range refs {
		s += " " + r.Address
	}
	return s
}

func note(e mke.Event) string {
	s := e.Message
	if e.Host != nil {
		s = e.Host.Address + ": " + s
	}
	if e.Warning {
		s = "warning: " + s
	}
	return s
}
