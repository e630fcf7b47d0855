package k0s

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const controllerYAML = `apiVersion: k0s.k0sproject.io/v1beta1
kind: ClusterConfig
spec:
  api: {address: 10.99.0.11, sans: [10.99.0.11, c1]}
  storage: {type: etcd, etcd: {peerAddress: 10.99.0.11}}
  telemetry: {enabled: false}`

// readNode reads a Node through the controller; there may be none.
func (h *host) readNode(name string) (n corev1.Node, ok bool) {
	h.t.Helper()
	r := h.sh("k0s kubectl get node --ignore-not-found -o json " + name)
	if r.Code != 0 || r.Stdout == "" {
		return n, false
	}
	if err := json.Unmarshal([]byte(r.Stdout), &n); err != nil {
		h.t.Fatal(err)
	}
	return n, true
}

func (h *host) waitReady(name, status string) {
	h.t.Helper()
	h.until(time.Minute, "k0s kubectl wait --for=condition=Ready="+status+" --timeout=5s node/"+name)
}

// join lets a host join as a worker with a new token.
func join(c, w *host, flags string) {
	token := strings.TrimSpace(c.must("k0s token create --role worker --expiry 15m"))
	w.write("/etc/k0s/k0stoken", token)
	w.must("k0s install worker --force --token-file /etc/k0s/k0stoken " + flags + " && k0s start")
}

// A controller comes up with its own node, and workers join it in all the ways that the sandbox
// wants to show.
func TestJoin(t *testing.T) {
	needTools(t)
	if !inNetwork(t, "10.99.0.11/32", "10.99.0.21/32") {
		return
	}
	c1 := newHost(t, "c1")
	c1.write("/etc/k0s/k0s.yaml", controllerYAML)
	begin := time.Now()
	c1.must("k0s install controller -c /etc/k0s/k0s.yaml --enable-worker --kubelet-extra-args='--node-ip=10.99.0.11 --v=2' && k0s start")
	c1.until(time.Minute, "test -S /run/k0s/status.sock")
	t.Log("API server ready after", time.Since(begin))
	c1.waitReady("c1", "True")
	t.Log("its node Ready after", time.Since(begin))

	sub(t, "the controller's node", []*host{c1}, func(t *testing.T) {
		c1.until(time.Minute, "k0s kubectl get node c1 -o yaml | grep -q 'node-role.kubernetes.io/control-plane: \"true\"'")
		n, _ := c1.readNode("c1")
		if n.Labels["node.k0sproject.io/role"] != "control-plane" {
			t.Errorf("labels %v", n.Labels)
		}
		found := false
		for _, taint := range n.Spec.Taints {
			found = found || taint == controlPlaneTaint
		}
		if !found {
			t.Errorf("taints %v", n.Spec.Taints)
		}
		if got := c1.must("k0s status"); !strings.Contains(got, "Role: controller\nWorkloads: true\n") || !strings.Contains(got, "Kube-api probing successful: true\n") {
			t.Errorf("status: %s", got)
		}
	})

	h1 := newHost(t, "H1.example")
	begin = time.Now()
	join(c1, h1, "--labels=zone=a,rack=7 --kubelet-extra-args=--node-ip=10.99.0.21")
	c1.waitReady("h1.example", "True")
	t.Log("worker Ready after", time.Since(begin))
	h1.until(time.Minute, "k0s status")
	t.Log("and answers after", time.Since(begin))

	sub(t, "a worker", []*host{c1, h1}, func(t *testing.T) {
		n, _ := c1.readNode("h1.example")
		if n.Labels["zone"] != "a" || n.Labels["rack"] != "7" || n.Labels["kubernetes.io/hostname"] != "h1.example" {
			t.Errorf("labels %v", n.Labels)
		}
		if id := strings.TrimSpace(h1.must("cat /etc/machine-id")); n.Status.NodeInfo.MachineID != id || n.Status.NodeInfo.KubeletVersion != "v1.36.3+k0s" {
			t.Errorf("%+v", n.Status.NodeInfo)
		}
		if a := n.Status.Addresses; len(a) != 2 || a[0].Address != "10.99.0.21" || a[1].Address != "h1.example" {
			t.Errorf("addresses %v", a)
		}
		conf := h1.must("cat /var/lib/k0s/kubelet.conf")
		if ca := strings.TrimSpace(c1.must("base64 -w0 /var/lib/k0s/pki/ca.crt")); !strings.Contains(conf, ca) || !strings.Contains(conf, "server: https://10.99.0.11:6443") {
			t.Errorf("kubelet.conf: %s", conf)
		}
		if who := h1.must("openssl x509 -noout -subject -in /var/lib/k0s/kubelet/pki/kubelet-client-current.pem"); !strings.Contains(who, "system:node:h1.example") {
			t.Errorf("certificate of %s", who)
		}
	})
	sub(t, "not ready", []*host{c1, h1}, func(t *testing.T) {
		h1.must("mkdir -p /etc/sandbox && touch /etc/sandbox/not-ready")
		c1.waitReady("h1.example", "False")
		h1.must("rm /etc/sandbox/not-ready")
		c1.waitReady("h1.example", "True")
	})
	sub(t, "a dead node is noticed", []*host{c1, h1}, func(t *testing.T) {
		h1.must("k0s stop")
		begin := time.Now()
		c1.waitReady("h1.example", "Unknown")
		t.Log("after", time.Since(begin))
	})
	sub(t, "a cordon outlives re-imaging", []*host{c1, h1}, func(t *testing.T) {
		before, _ := c1.readNode("h1.example")
		c1.must("k0s kubectl cordon h1.example")
		h1.must("k0s reset")
		join(c1, h1, "--kubelet-extra-args=--node-ip=10.99.0.21")
		c1.waitReady("h1.example", "True")
		n, _ := c1.readNode("h1.example")
		if !n.Spec.Unschedulable || n.UID != before.UID {
			t.Errorf("unschedulable %v, uid %s, before %s", n.Spec.Unschedulable, n.UID, before.UID)
		}
		h1.must("k0s stop && k0s reset")
		c1.must("k0s kubectl delete node h1.example")
	})
	sub(t, "never registered", []*host{c1, h1}, func(t *testing.T) {
		h1.must("echo 0s >/etc/sandbox/status-delay && touch /etc/sandbox/never-register")
		join(c1, h1, "--kubelet-extra-args=--node-ip=10.99.0.21")
		h1.until(time.Minute, "k0s status && test -s /var/lib/k0s/kubelet.conf")
		if _, ok := c1.readNode("h1.example"); ok {
			t.Error("the node is there")
		}
		h1.must("k0s stop && k0s start")
		c1.waitReady("h1.example", "True")
		h1.must("k0s stop && k0s reset")
	})
	sub(t, "never bootstrapped", []*host{c1, h1}, func(t *testing.T) {
		h1.must("touch /etc/sandbox/never-bootstrap")
		join(c1, h1, "--kubelet-extra-args=--node-ip=10.99.0.21")
		h1.until(time.Minute, "grep -q 'keeps this kubelet from asking' /run/units/*.log")
		if r := h1.sh("test -e /var/lib/k0s/kubelet.conf -o -e /run/k0s/status.sock"); r.Code == 0 {
			t.Error("it has bootstrapped")
		}
	})
	sub(t, "a bad token", []*host{c1, h1}, func(t *testing.T) {
		h1.must("k0s stop; systemctl reset-failed k0sworker.service; k0s reset && k0s install worker --force --token-file /etc/k0s/k0stoken")
		h1.write("/etc/k0s/k0stoken", strings.TrimSpace(c1.must("k0s token create --role controller")))
		h1.must("k0s start")
		h1.until(time.Minute, "test $(systemctl is-active k0sworker.service) = failed")
		if got := h1.sh("k0s start"); got.Stderr != "Error: service in failed state\n" || got.Code != 1 {
			t.Errorf("start of a failed service: %+v", got)
		}
		if got := h1.journal(); !strings.Contains(got, "wrong token type controller-bootstrap, expected type: kubelet-bootstrap") {
			t.Error(got)
		}
	})
	sub(t, "a killed controller leaves nothing running", []*host{c1, h1}, func(t *testing.T) {
		pids := c1.must("cat /run/k0s/*.pid")
		c1.must("kill -9 $(cat /run/units/k0scontroller.service)")
		// Nobody reaps them here, so a zombie is as good as gone.
		c1.until(10*time.Second, "for p in "+strings.Join(strings.Fields(pids), " ")+"; do s=$(awk '{print $3}' /proc/$p/stat 2>/dev/null); test \"${s:-Z}\" = Z || exit 1; done")
		c1.must("systemctl reset-failed k0scontroller.service; k0s start")
		c1.waitReady("c1", "True")
	})
	begin = time.Now()
	c1.must("k0s stop")
	t.Log("controller stopped after", time.Since(begin))
}
