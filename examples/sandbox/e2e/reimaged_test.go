package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientcmd "k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/cert"
	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/mke"
)

// owed is the annotation of a node that is to be un-cordoned.
const owed = "mke.mirantis.com/uncordon-owed"

// wipe takes k0s, and all that it made, off a host. Its node stays.
func (b *bed) wipe(name string) {
	b.t.Helper()
	b.Host(name).Sh("k0s stop && k0s reset && rm -rf /etc/k0s " + k0sPath)
}

// gone waits until the cluster has seen that nobody speaks for the node any more.
func (b *bed) gone(name string) {
	b.t.Helper()
	b.waitNode(name, "is not Ready", func(n *corev1.Node) bool { return !isReady(n) })
}

// testRow9 re-images a host whose node is cordoned. The first addition is cut short before it has
// un-cordoned the node: the second one still knows that it is owed.
func testRow9(t *testing.T, b *bed) {
	w := b.world()
	b.wipe("h5")
	const id = "0123456789abcdef0123456789abcdef"
	b.Host("h5").WriteFile("/etc/machine-id", []byte(id+"\n"), 0o444)
	b.cordon("h5", true)
	b.gone("h5")

	first := b.caller()
	stop := make(chan struct{})
	first.on(mke.Uncordon, mke.Started, func() { close(stop) })
	r, err := first.addNodes(mke.Options{Hosts: b.specs("h5"), Stop: stop})
	if !errors.Is(err, mke.ErrStopped) {
		t.Fatalf("an addition that was stopped: %v", err)
	}
	if h := b.in(r, "h5", "9"); !slices.Contains(h.Did, "installed") || slices.Contains(h.Did, "un-cordoned") {
		t.Errorf("done: %v", h.Did)
	}
	n := b.node("h5")
	if _, ok := n.Annotations[owed]; !ok || !n.Spec.Unschedulable {
		t.Errorf("after the first run: cordoned %t, annotations %v", n.Spec.Unschedulable, n.Annotations)
	}

	second := b.caller()
	r = second.add("h5")
	if h := b.in(r, "h5", "2"); !slices.Contains(h.Did, "un-cordoned") {
		t.Errorf("done: %v", h.Did)
	}
	n = b.node("h5")
	if _, ok := n.Annotations[owed]; ok || n.Spec.Unschedulable {
		t.Errorf("after the second run: cordoned %t, annotations %v", n.Spec.Unschedulable, n.Annotations)
	}
	if n.Status.NodeInfo.MachineID != id {
		t.Errorf("the node is that of machine %s, want %s", n.Status.NodeInfo.MachineID, id)
	}
	b.joined(w, "h5")
}

// testRow10 has a host with nothing on it whose node is Ready: refused. Once the node is Ready no
// longer the host is in row 9, and is installed and un-cordoned in one go.
func testRow10(t *testing.T, b *bed) {
	// Whoever holds the name goes on renewing the node's lease.
	ctx, cancel := context.WithCancel(t.Context())
	held := make(chan error, 1)
	go func() { held <- b.renew(ctx, "h6") }()
	b.wipe("h6")
	w := b.world("h6", "c1")
	c := b.caller()
	r, err := c.addNodes(mke.Options{Hosts: b.specs("h6")})
	refused, ok := errors.AsType[*mke.HostError](err)
	if !ok || refused.Scenario.Row != "10" || mke.Retryable(err) {
		t.Errorf("adding it: %v", err)
	}
	b.in(r, "h6", "10")
	if !isReady(b.node("h6")) {
		t.Error("the node has not stayed Ready: the test shows nothing")
	}
	b.unchanged(w, c.agent)
	cancel()
	if err := <-held; err != nil {
		t.Errorf("renewing the node's lease: %v", err)
	}

	b.cordon("h6", true)
	b.gone("h6")
	r = b.caller().add("h6")
	if h := b.in(r, "h6", "9"); !slices.Contains(h.Did, "un-cordoned") || !slices.Contains(h.Did, "installed") {
		t.Errorf("done: %v", h.Did)
	}
	if b.node("h6").Spec.Unschedulable {
		t.Error("the node is still cordoned")
	}
	b.joined(w, "h6")
}

// renew renews a node's lease as its kubelet does, until ctx ends.
func (b *bed) renew(ctx context.Context, name string) error {
	for {
		patch := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
		_, err := b.kube.CoordinationV1().Leases("kube-node-lease").Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

// testRow11 has a worker of another cluster among good hosts, one of them behind the bastion: nothing
// at all is done.
func testRow11(t *testing.T, b *bed) {
	ca, err := cert.NewCA("another cluster")
	if err != nil {
		t.Fatal(err)
	}
	conf, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"default-cluster": {Server: "https://192.0.2.1:6443", CertificateAuthorityData: ca.PEM()}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"default-auth": {Token: "a"}},
		Contexts:       map[string]*clientcmdapi.Context{"default-context": {Cluster: "default-cluster", AuthInfo: "default-auth"}},
		CurrentContext: "default-context",
	})
	if err != nil {
		t.Fatal(err)
	}
	b.placeK0s("h9")
	h9 := b.Host("h9")
	h9.WriteFile("/etc/k0s/k0stoken", []byte("of another cluster\n"), 0o600)
	h9.Exec(k0sPath, "install", "worker", "--token-file=/etc/k0s/k0stoken")
	h9.WriteFile("/var/lib/k0s/kubelet.conf", conf, 0o600)
	defer h9.Sh("k0s reset && rm -rf /etc/k0s " + k0sPath)

	names := []string{"h3", "h9", "h10", "h4"}
	w := b.world(b.Hosts()...)
	c := b.caller()
	r, err := c.addNodes(mke.Options{Hosts: b.specs(names...)})
	refused, ok := errors.AsType[*mke.HostError](err)
	if !ok || refused.Scenario.Row != "11" || !errors.Is(err, mke.ErrOtherCluster) || mke.Retryable(err) {
		t.Errorf("adding it: %v", err)
	}
	print, err2 := hosts.Fingerprint(ca.PEM())
	if err2 != nil {
		t.Fatal(err2)
	}
	for _, part := range []string{"10.99.0.29 (h9)", "another cluster", print, "kubelet.conf"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
	b.in(r, "h9", "11")
	b.in(r, "h3", "1")
	for _, h := range r.Hosts {
		if len(h.Did) > 0 {
			t.Errorf("%s: done: %v", h.Host, h.Did)
		}
	}
	b.unchanged(w, c.agent)
	if commands := c.changing(); len(commands) > 0 {
		t.Errorf("commands that change something were run:\n\t%s", quoted(commands))
	}
}
