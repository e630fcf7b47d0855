// Package sim is a whole MKE 4 cluster in memory: its API objects, its etcd, and
// hosts that run commands.
//
// It is what the transcripts of package mke run on. Its clock is that of the
// testing/synctest bubble it runs in: what takes time on a real host takes time
// here, and costs none.
package sim

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mkesdk/mkesdk/etcdverify"
	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/mke"
	"github.com/mkesdk/mkesdk/transport"
)

// K0sVersion is the version of k0s that a World runs.
const K0sVersion = "v1.36.3+k0s.2"

// A World is a cluster and the hosts around it. Make one with [New].
type World struct {
	t testing.TB

	mu      sync.Mutex
	config  mke.MkeConfig
	busy    []string
	nodes   map[string]mke.Node
	hosts   map[string]*Host // by SSH address
	leases  leases
	uids    int
	writes  []string // what was written to the API, in order
	etcd    etcdverify.Evidence
	missing bool // the registry lacks the k0s binary

	tokens tokens
}

// New returns a world that reports to t, with one controller, c1 at 10.0.0.11, which is also a node.
func New(t testing.TB) *World {
	w := &World{
		t: t,
		config: mke.MkeConfig{
			Version: mke.SupportedMKE, DataDir: "/var/lib/k0s",
			ImageRegistry: mke.Registry{URL: "registry.example/mke"},
		},
		nodes: map[string]mke.Node{}, hosts: map[string]*Host{},
		etcd: etcdverify.Evidence{
			Via: "c1", ClusterID: 0xc1, AlarmsKnown: true,
			Members: []etcdverify.Member{{ID: 1, Name: "c1", PeerURLs: []string{"https://10.0.0.11:2380"}, Started: etcdverify.Yes, Learner: etcdverify.No}},
			Health:  []etcdverify.Health{{Host: "c1", Answered: true, Read: true, MemberID: 1, ClusterID: 0xc1, Leader: 1, Version: "3.6.14", DBSize: 1 << 20, DBQuota: 2 << 30}},
		},
	}
	w.leases.byName = map[string]lease{}
	w.tokens.valid = map[string]bool{}
	c1 := w.AddHost("c1", "10.0.0.11")
	c1.installController()
	w.config.Hosts = []hosts.Spec{{Role: hosts.ControllerWorker, SSH: hosts.SSH{Address: "10.0.0.11", User: "root", Port: 22}}}
	w.AddNode(mke.Node{Name: "c1", MachineID: c1.MachineID(), Addresses: []string{"10.0.0.11"}, Ready: true, Controller: true})
	return w
}

// tokens are the join tokens. They have a lock of their own, as a host hands
// them out while it runs a command.
type tokens struct {
	mu    sync.Mutex
	made  int
	valid map[string]bool // by id
}

// Cluster returns the views of w.
func (w *World) Cluster() *mke.Cluster {
	return &mke.Cluster{
		Nodes: nodes{w}, Config: config{w}, Etcd: etcd{w}, Leases: &w.leases, Artifacts: artifacts{w}, SSH: dialer{w},
		CA: []byte(ThisCA),
	}
}

// AddNode puts a node into the cluster.
func (w *World) AddNode(n mke.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.uids++
	n.UID = fmt.Sprintf("uid-%d", w.uids)
	if n.Kubelet == "" {
		n.Kubelet = "v1.36.3+k0s"
	}
	w.nodes[n.Name] = n
}

// SetBusy makes the cluster say that something is in progress.
func (w *World) SetBusy(what ...string) { w.busy = what }

// Evidence lets a test change what is seen of etcd.
func (w *World) Evidence() *etcdverify.Evidence { return &w.etcd }

// RemoveArtifact takes the k0s binary out of the registry.
func (w *World) RemoveArtifact() { w.missing = true }

// Writes returns what was written to the API so far, leases apart, a line each.
func (w *World) Writes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.writes)
}

// Tokens returns how many join tokens are still valid.
func (w *World) Tokens() int {
	w.tokens.mu.Lock()
	defer w.tokens.mu.Unlock()
	return len(w.tokens.valid)
}

// Locks returns the names of the leases that are held.
func (w *World) Locks() []string {
	w.leases.mu.Lock()
	defer w.leases.mu.Unlock()
	var names []string
	for name := range w.leases.byName {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (w *World) wrote(format string, args ...any) {
	w.writes = append(w.writes, fmt.Sprintf(format, args...))
}

type config struct{ w *World }

func (c config) Get(context.Context) (mke.MkeConfig, error) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	cfg := c.w.config
	cfg.Hosts = slices.Clone(cfg.Hosts)
	return cfg, nil
}

func (c config) Busy(context.Context) ([]string, error) { return c.w.busy, nil }

func (c config) AddHosts(ctx context.Context, specs []hosts.Spec, guard func(context.Context) error) (written []string, err error) {
	if err := guard(ctx); err != nil {
		return nil, err
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	for _, s := range specs {
		if !slices.ContainsFunc(c.w.config.Hosts, func(h hosts.Spec) bool { return h.SSH.Address == s.SSH.Address }) {
			c.w.config.Hosts = append(c.w.config.Hosts, s)
			c.w.wrote("MkeConfig: host %s added", s.SSH.Address)
			written = append(written, s.SSH.Address)
		}
	}
	return written, nil
}

type etcd struct{ w *World }

func (e etcd) Evidence(context.Context, transport.Conn, string) (etcdverify.Evidence, error) {
	return e.w.etcd, nil
}

type artifacts struct{ w *World }

func (a artifacts) K0s(_ context.Context, r mke.Registry, version, arch string) (mke.Binary, error) {
	if a.w.missing {
		return mke.Binary{}, &registryMissing{fmt.Sprintf("%s/k0s:%s", r.URL, strings.ReplaceAll(version, "+", "-"))}
	}
	content := "k0s " + version
	return mke.Binary{
		Digest: "sha256:" + sum(content), Size: int64(len(content)),
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil },
	}, nil
}

type registryMissing struct{ ref string }

func (e *registryMissing) Error() string { return "registry does not have " + e.ref }

type dialer struct{ w *World }

func (d dialer) Dial(_ context.Context, h hosts.SSH) (transport.Conn, error) {
	d.w.mu.Lock()
	host := d.w.hosts[h.Address]
	d.w.mu.Unlock()
	if host == nil || host.Unreachable {
		return nil, fmt.Errorf("root@%s:22: dial tcp: no route to host", h.Address)
	}
	return &conn{host: host}, nil
}
