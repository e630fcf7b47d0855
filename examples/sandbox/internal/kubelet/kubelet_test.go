package kubelet

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func testNode(t *testing.T, c *fake.Clientset) *node {
	t.Helper()
	ip, err := nodeIP("")
	if err != nil {
		t.Skip("this machine has no address but the loopback's: ", err)
	}
	return &node{
		Options: Options{NodeName: "h1", RootDir: t.TempDir(), Version: "v1", NodeIP: ip, Labels: map[string]string{"zone": "a"}, Log: slog.New(slog.DiscardHandler)},
		client:  c, log: slog.New(slog.DiscardHandler),
	}
}

func readyOf(t *testing.T, c *fake.Clientset) corev1.NodeCondition {
	t.Helper()
	n, err := c.CoreV1().Nodes().Get(t.Context(), "h1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, cond := range n.Status.Conditions {
		if cond.Type == corev1.NodeReady {
			return cond
		}
	}
	t.Fatal("no Ready condition")
	return corev1.NodeCondition{}
}

// A Node that is there keeps what an administrator did to it and gets this machine's identity.
func TestRegisterOverStaleNode(t *testing.T) {
	long := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	c := fake.NewClientset(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "h1", UID: "old", Labels: map[string]string{"admin": "kept", "zone": "b"}},
		Spec:       corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{{Key: "node.kubernetes.io/unschedulable", Effect: "NoSchedule"}}},
		Status: corev1.NodeStatus{
			NodeInfo: corev1.NodeSystemInfo{MachineID: "another"},
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: long},
				{Type: corev1.NodeDiskPressure, Status: corev1.ConditionUnknown, LastTransitionTime: long},
			},
		},
	})
	n := testNode(t, c)
	if err := n.register(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := c.CoreV1().Nodes().Get(t.Context(), "h1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !got.Spec.Unschedulable || len(got.Spec.Taints) != 1 || got.Labels["admin"] != "kept" || got.Labels["zone"] != "a" || n.uid != "old" {
		t.Errorf("%+v", got)
	}
	if got.Status.NodeInfo.MachineID == "another" || len(got.Status.Conditions) != 2 {
		t.Errorf("%+v", got.Status)
	}
	if r := readyOf(t, c); r.Status != corev1.ConditionTrue || r.LastTransitionTime.Equal(&long) {
		t.Errorf("%+v", r)
	}
	if lease, err := c.CoordinationV1().Leases(leaseNamespace).Get(t.Context(), "h1", metav1.GetOptions{}); err != nil || lease.OwnerReferences[0].UID != "old" {
		t.Errorf("%+v, %v", lease, err)
	}
}

// A heart-beat writes the Ready condition alone and does not read; the time of the last transition
// moves only when the status does.
func TestHeartbeat(t *testing.T) {
	c := fake.NewClientset()
	n := testNode(t, c)
	broken := false
	n.Knobs.NotReady = func() bool { return broken }
	if err := n.register(t.Context()); err != nil {
		t.Fatal(err)
	}
	since := readyOf(t, c).LastTransitionTime
	c.ClearActions()
	if err := n.writeReady(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for _, a := range c.Actions() {
		if a.GetVerb() != "patch" || a.GetSubresource() != "status" {
			t.Errorf("a heart-beat did %s %s/%s", a.GetVerb(), a.GetResource().Resource, a.GetSubresource())
		}
	}
	if r := readyOf(t, c); !r.LastTransitionTime.Equal(&since) {
		t.Errorf("%v moved from %v", r.LastTransitionTime, since)
	}
	broken = true
	if err := n.writeReady(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if r := readyOf(t, c); r.Status != corev1.ConditionFalse || r.Reason != "KubeletNotReady" {
		t.Errorf("%+v", r)
	}
}

// The kubelet says once that it is ready, renews its lease all along, and does not make a Node again
// that somebody deleted.
func TestBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fake.NewClientset()
		n := testNode(t, c)
		if err := n.register(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		told, done := 0, make(chan struct{})
		go func() { defer close(done); n.beat(ctx, func() { told++ }) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		lease, err := c.CoordinationV1().Leases(leaseNamespace).Get(ctx, "h1", metav1.GetOptions{})
		if err != nil || time.Since(lease.Spec.RenewTime.Time) > leaseEvery {
			t.Errorf("%v, %v", lease, err)
		}
		if err := c.CoreV1().Nodes().Delete(ctx, "h1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, err := c.CoreV1().Nodes().Get(ctx, "h1", metav1.GetOptions{}); err == nil {
			t.Error("the deleted node is back")
		}
		cancel()
		<-done
		if told != 1 {
			t.Errorf("ready was said %d times", told)
		}
	})
}

// The wait for a certificate ends when it is issued, and when it is denied.
func TestSign(t *testing.T) {
	for name, answer := range map[string]certv1.CertificateSigningRequestStatus{
		"issued": {Certificate: []byte("cert"), Conditions: []certv1.CertificateSigningRequestCondition{{Type: certv1.CertificateApproved, Status: corev1.ConditionTrue}}},
		"denied": {Conditions: []certv1.CertificateSigningRequestCondition{{Type: certv1.CertificateDenied, Status: corev1.ConditionTrue, Message: "no"}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := fake.NewClientset()
			go func() {
				time.Sleep(5 * time.Second)
				list, err := c.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
				if err != nil || len(list.Items) != 1 {
					t.Errorf("%v, %v", list, err)
					return
				}
				csr := list.Items[0]
				if csr.Spec.SignerName != "kubernetes.io/kube-apiserver-client-kubelet" {
					t.Errorf("signer %s", csr.Spec.SignerName)
				}
				csr.Status = answer
				if _, err := c.CertificatesV1().CertificateSigningRequests().UpdateStatus(t.Context(), &csr, metav1.UpdateOptions{}); err != nil {
					t.Error(err)
				}
			}()
			cert, err := sign(t.Context(), c, []byte("request"))
			if name == "issued" && (err != nil || string(cert) != "cert") || name == "denied" && (err == nil || !strings.Contains(err.Error(), "Denied: no")) {
				t.Errorf("%s: %q, %v", name, cert, err)
			}
		})
	}
}

// What the bootstrap leaves is what the kubelet reads: the CA inside, the pair beside, for root only.
func TestKubeconfig(t *testing.T) {
	dir := t.TempDir()
	pair, err := storeCertificate(filepath.Join(dir, "pki"), []byte("pair"))
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "kubelet.conf")
	if err := writeKubeconfig(name, "https://10.99.0.11:6443", []byte("the CA"), pair); err != nil {
		t.Fatal(err)
	}
	conf, err := clientcmd.LoadFromFile(name)
	if err != nil {
		t.Fatal(err)
	}
	cl, who := conf.Clusters["default-cluster"], conf.AuthInfos["default-auth"]
	if string(cl.CertificateAuthorityData) != "the CA" || cl.Server != "https://10.99.0.11:6443" || who.ClientCertificate != pair || who.ClientKey != pair {
		t.Errorf("%+v %+v", cl, who)
	}
	for _, f := range []string{name, pair} {
		if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", f, info.Mode(), err)
		}
	}
	if data, err := os.ReadFile(pair); err != nil || string(data) != "pair" {
		t.Errorf("%q %v", data, err)
	}
}

// A kubeconfig that is there is taken as it is; a token that cannot be read is final.
func TestBootstrap(t *testing.T) {
	o := Options{Kubeconfig: filepath.Join(t.TempDir(), "kubelet.conf"), Log: slog.New(slog.DiscardHandler)}
	if err := Bootstrap(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no join token was given") {
		t.Errorf("without a token: %v", err)
	}
	bad := errors.New("unreadable")
	o.Bootstrap = func() (*clientcmdapi.Config, error) { return nil, bad }
	if err := Bootstrap(t.Context(), o); !errors.Is(err, bad) {
		t.Errorf("with a bad token: %v", err)
	}
	if err := os.WriteFile(o.Kubeconfig, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Bootstrap(t.Context(), o); err != nil {
		t.Errorf("with a kubeconfig: %v", err)
	}
}

func TestChooseIP(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1"), netip.MustParseAddr("10.99.0.21"), netip.MustParseAddr("fd00::21")}
	for want, got := range map[string]string{"": "10.99.0.21", "fd00::21": "fd00::21", "10.99.0.21": "10.99.0.21", "10.99.0.22": "", "nonsense": ""} {
		if ip, err := chooseIP(own, want); ip != got || (err == nil) != (got != "") {
			t.Errorf("%q: %q, %v", want, ip, err)
		}
	}
	if _, err := chooseIP(own[:2], ""); err == nil {
		t.Error("a host without an address has one")
	}
}

func TestUUID(t *testing.T) {
	if got := uuid("0123456789abcdef0123456789abcdef"); got != "01234567-89ab-cdef-0123-456789abcdef" {
		t.Error(got)
	}
	if got := uuid(""); got != "" {
		t.Error(got)
	}
}
