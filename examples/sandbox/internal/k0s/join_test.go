package k0s

import (
	"strings"
	"testing"
	"time"
)

const controllerYAML = `apiVersion: k0s.k0sproject.io/v1beta1
kind: ClusterConfig
spec:
  api: {address: 10.99.0.11, sans: [10.99.0.11, c1]}
  storage: {type: etcd, etcd: {peerAddress: 10.99.0.11}}
  telemetry: {enabled: false}`

// A controller comes up with its own node, a worker joins with a token, both as the real ones do.
func TestJoin(t *testing.T) {
	toolsOrSkip(t)
	if !inNetwork(t, "10.99.0.11/32", "10.99.0.21/32") {
		return
	}
	c1 := newHost(t, "c1")
	c1.write("/etc/k0s/k0s.yaml", controllerYAML)
	begin := time.Now()
	c1.must("k0s install controller -c /etc/k0s/k0s.yaml --enable-worker --kubelet-extra-args=--node-ip=10.99.0.11 && k0s start")
	c1.until(30*time.Second, "k0s status")
	t.Log("API server ready after", time.Since(begin))
	c1.until(30*time.Second, "k0s kubectl get etcdmember c1 -o jsonpath={.status.memberID} | grep .")
	t.Log("EtcdMember after", time.Since(begin))
	c1.until(30*time.Second, "k0s kubectl wait --for=condition=Ready node/c1 --timeout=20s")
	t.Log("own node Ready after", time.Since(begin))

	h1 := newHost(t, "H1.example")
	token := c1.must("k0s token create --role worker --expiry 15m")
	h1.write("/etc/k0s/k0stoken", strings.TrimSpace(token))
	begin = time.Now()
	h1.must("k0s install worker --token-file /etc/k0s/k0stoken --labels=zone=a --kubelet-extra-args=--node-ip=10.99.0.21 && k0s start")
	c1.until(30*time.Second, "k0s kubectl wait --for=condition=Ready node/h1.example --timeout=20s")
	t.Log("worker Ready after", time.Since(begin))
	h1.until(30*time.Second, "k0s status")
	t.Log("worker's status after", time.Since(begin))
	t.Log(c1.must("k0s kubectl get nodes -o wide --show-labels; k0s kubectl get node h1.example -o yaml; k0s kubectl get pods -A; k0s kubectl get csr; ps ax -o rss,args | cut -c1-100"))
	t.Log(c1.journal())
	begin = time.Now()
	h1.must("k0s stop")
	t.Log("worker stopped after", time.Since(begin))
	c1.until(30*time.Second, "k0s kubectl wait --for=condition=Ready=Unknown node/h1.example --timeout=20s")
	t.Log("dead node noticed after", time.Since(begin))
	begin = time.Now()
	c1.must("k0s stop")
	t.Log("controller stopped after", time.Since(begin))
}
