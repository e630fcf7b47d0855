package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/host"
	"github.com/mkesdk/mkesdk/examples/sandbox/sandboxtest"
	"github.com/mkesdk/mkesdk/hosts"
)

// TestSandbox runs everything that can share one cluster, in this order: a part leaves every node
// Ready and no lock behind.
func TestSandbox(t *testing.T) {
	c := sandboxtest.New(t, sandboxtest.Config{Spare: 14, Bastion: true})
	mkectl := buildMkectl(t)
	for _, part := range []struct {
		name string
		run  func(*testing.T, *bed)
	}{
		{"workers", testWorkers},
		{"scenario", testScenarios},
		{"entry", testEntry},
		{"bad input", testBadInput},
		{"changed", testChanged},
		{"lock", testLock},
		{"mkectl", testMkectl},
		{"interrupted", testInterrupted},
		{"secrets", testSecrets},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, newBed(t, c, mkectl)) })
	}
}

// A bed is the shared cluster, for one part of the test.
type bed struct {
	*sandboxtest.Cluster
	t       *testing.T
	mkectl  string // the program
	homeDir string // see home
	// The administrator's clients, apart from those that are tested.
	kube kubernetes.Interface
	dyn  dynamic.Interface
}

// admin is the user agent of what the tests themselves do to the cluster.
const admin = "e2e-admin"

func newBed(t *testing.T, c *sandboxtest.Cluster, mkectl string) *bed {
	t.Helper()
	c = c.For(t)
	cfg := c.RESTConfig()
	cfg.UserAgent, cfg.QPS, cfg.Burst = admin, 100, 200
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &bed{Cluster: c, t: t, mkectl: mkectl, kube: kube, dyn: dyn}
}

// part is the bed for a part of this part.
func (b *bed) part(t *testing.T) *bed { return newBed(t, b.Cluster, b.mkectl) }

// specs are the hosts of those names, as workers.
func (b *bed) specs(names ...string) []hosts.Spec {
	b.t.Helper()
	list, err := hosts.LoadFile(b.HostsYAMLOf(names...))
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}

// k0sPath is where k0s goes on a host.
const k0sPath = "/usr/local/bin/k0s"

// placeK0s puts the cluster's k0s on a host, so that adding it has nothing to move.
func (b *bed) placeK0s(names ...string) {
	b.t.Helper()
	for _, name := range names {
		b.Host(name).Exec("cp", host.ProgramDir+"/"+host.Program, k0sPath)
	}
}

// ensure adds those of the hosts that have not been added yet.
func (b *bed) ensure(names ...string) {
	b.t.Helper()
	for _, name := range names {
		if b.node(name) == nil {
			b.placeK0s(name)
			b.caller().add(name)
		}
	}
}

// settle waits until k0s answers on a host where it runs, which it does some time after its node is
// Ready. From then on it changes no file.
func (b *bed) settle(name string) {
	b.t.Helper()
	h := b.Host(name)
	sandboxtest.Eventually(b.t, 30*time.Second, "k0s on "+name+" answers", func() bool {
		_, err := h.Run("/bin/sh", "-c", "systemctl is-active k0sworker k0scontroller | grep -qx active || exit 0; exec "+k0sPath+" status")
		return err == nil
	})
}

// quoted is a list for an error message.
func quoted[T any](list []T) string {
	var out []string
	for _, v := range list {
		out = append(out, fmt.Sprint(v))
	}
	return strings.Join(out, "\n\t")
}
