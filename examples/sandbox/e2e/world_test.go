package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mkesdk/mkesdk/examples/sandbox/sandboxtest"
	"github.com/mkesdk/mkesdk/mke"
)

// mkeConfigs is the resource that lists the cluster's hosts.
var mkeConfigs = schema.GroupVersionResource{Group: "mke.mirantis.com", Version: "v1alpha1", Resource: "mkeconfigs"}

const (
	configName = "mke"
	auditLog   = "/run/k0s/audit.log"
)

// A world is how everything is that an operation can change.
type world struct {
	layers map[string]sandboxtest.Snapshot
	told   map[string]int // commands, by host
	audit  int            // bytes of the audit log
	config int64          // generation of the MkeConfig, which its operator's writes leave alone
	tokens []string       // join tokens
	leases []string       // operation locks
}

// world looks at the hosts of those names and at the cluster.
func (b *bed) world(names ...string) world {
	b.t.Helper()
	w := world{
		layers: map[string]sandboxtest.Snapshot{}, told: map[string]int{},
		audit: b.auditSize(), config: b.configGeneration(), tokens: b.tokens(), leases: b.leases(),
	}
	for _, name := range names {
		b.settle(name)
		w.layers[name] = b.Host(name).Snapshot()
		w.told[name] = len(b.Host(name).Commands())
	}
	return w
}

// hostsUnchanged fails the test if a file on one of the world's hosts is not what it was.
func (b *bed) hostsUnchanged(w world) {
	b.t.Helper()
	for name, before := range w.layers {
		changes := slices.DeleteFunc(sandboxtest.Diff(before, b.Host(name).Snapshot()), ownDoing)
		if len(changes) > 0 {
			b.t.Errorf("files have changed on %s:\n\t%s", name, quoted(changes))
		}
	}
}

// ownDoing says whether a controller changes that file by itself: its etcd, and its audit log.
func ownDoing(c sandboxtest.Change) bool {
	return c.Path == auditLog || strings.HasPrefix(c.Path, "/var/lib/k0s/etcd/")
}

// unchanged fails the test if anything was changed since the world was looked at, by a client of
// that user agent or on the hosts.
func (b *bed) unchanged(w world, agent string) {
	b.t.Helper()
	b.hostsUnchanged(w)
	if writes := b.writes(w, agent); len(writes) > 0 {
		b.t.Errorf("it wrote to the cluster:\n\t%s", quoted(writes))
	}
	b.clusterUnchanged(w)
}

// unchangedButLock is unchanged, but for a lock that was taken and given back.
func (b *bed) unchangedButLock(w world, agent string) {
	b.t.Helper()
	b.hostsUnchanged(w)
	var others []write
	taken := map[string]int{}
	for _, x := range b.writes(w, agent) {
		switch {
		case !x.lock():
			others = append(others, x)
		case x.Verb == "create":
			taken[x.Name]++
		case x.Verb == "delete":
			taken[x.Name]--
		}
	}
	if len(others) > 0 {
		b.t.Errorf("it wrote to the cluster more than its lock:\n\t%s", quoted(others))
	}
	if len(taken) == 0 {
		b.t.Error("it took no lock")
	}
	for name, n := range taken {
		if n != 0 {
			b.t.Errorf("the lock %s was taken %+d times more than it was given back", name, n)
		}
	}
	b.clusterUnchanged(w)
}

func (b *bed) clusterUnchanged(w world) {
	b.t.Helper()
	if is := b.configGeneration(); is != w.config {
		b.t.Errorf("the MkeConfig is in generation %d, it was in %d", is, w.config)
	}
	b.noToken(w)
	if is := b.leases(); !slices.Equal(is, w.leases) {
		b.t.Errorf("the operation locks are %v, they were %v", is, w.leases)
	}
}

// noToken fails the test if there is a join token that was not there before. The controller has made
// one for its own worker, which goes when its time is up.
func (b *bed) noToken(w world) {
	b.t.Helper()
	for _, id := range b.tokens() {
		if !slices.Contains(w.tokens, id) {
			b.t.Errorf("there is a new join token %s", id)
		}
	}
}

// A write is one that the API server was asked for.
type write struct {
	Verb, Resource, Namespace, Name, Subresource string
	Code                                         int
	Agent                                        string
}

func (w write) String() string {
	return fmt.Sprintf("%s %s %s/%s %s: %d, by %s", w.Verb, w.Resource, w.Namespace, w.Name, w.Subresource, w.Code, w.Agent)
}

// lock says whether w is about an operation lock.
func (w write) lock() bool {
	return w.Resource == "leases" && w.Namespace == mke.Namespace && strings.HasPrefix(w.Name, "mke-")
}

// writes are those that the API server was asked for since the world was looked at, by the client
// with that user agent, and by k0s, which makes join tokens when it is told to.
func (b *bed) writes(w world, agent string) []write {
	b.t.Helper()
	text := b.Host("c1").Exec("tail", "-c", fmt.Sprintf("+%d", w.audit+1), auditLog)
	var found []write
	for line := range strings.Lines(text) {
		var e struct {
			Verb, UserAgent string
			ObjectRef       struct{ Resource, Namespace, Name, Subresource string }
			ResponseStatus  struct{ Code int }
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			b.t.Fatalf("audit log: %v: %s", err, line)
		}
		ref := e.ObjectRef
		token := e.UserAgent == "k0s" && ref.Resource == "secrets"
		if !strings.HasPrefix(e.UserAgent, agent) && !token {
			continue
		}
		found = append(found, write{e.Verb, ref.Resource, ref.Namespace, ref.Name, ref.Subresource, e.ResponseStatus.Code, e.UserAgent})
	}
	return found
}

func (b *bed) auditSize() int {
	b.t.Helper()
	var n int
	if _, err := fmt.Sscan(b.Host("c1").Exec("stat", "-c", "%s", auditLog), &n); err != nil {
		b.t.Fatalf("size of the audit log: %v", err)
	}
	return n
}

func (b *bed) configGeneration() int64 {
	b.t.Helper()
	o, err := b.dyn.Resource(mkeConfigs).Namespace(mke.Namespace).Get(b.t.Context(), configName, metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return o.GetGeneration()
}

// tokens are the ids of the join tokens there are.
func (b *bed) tokens() (ids []string) {
	b.t.Helper()
	list, err := b.kube.CoreV1().Secrets("kube-system").List(b.t.Context(), metav1.ListOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, s := range list.Items {
		if s.Type == "bootstrap.kubernetes.io/token" {
			ids = append(ids, s.Name)
		}
	}
	return ids
}

// leases are the names of the operation locks there are.
func (b *bed) leases() (names []string) {
	b.t.Helper()
	list, err := b.kube.CoordinationV1().Leases(mke.Namespace).List(b.t.Context(), metav1.ListOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, l := range list.Items {
		names = append(names, l.Name)
	}
	return names
}
