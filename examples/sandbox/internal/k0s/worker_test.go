package k0s

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// notMade are files of a real worker that the stand-in does not have, by prefix, and why.
var notMade = map[string]string{
	"/var/lib/k0s/bin/ip":           "links to iptables: there is no network of pods",
	"/var/lib/k0s/containerd/":      "there is no containerd",
	"/var/lib/k0s/images/pause.tar": "put there by whoever recorded",
}

// A worker, from install to reset, beside a controller.
func TestWorker(t *testing.T) {
	needTools(t)
	if !inNetwork(t, "10.99.0.11/32", "10.99.0.14/32") {
		return
	}
	c := newHost(t, "k0sh1")
	c.write("/etc/k0s/k0s.yaml", controllerYAML)
	c.must("k0s install controller -c /etc/k0s/k0s.yaml && k0s start")
	c.until(time.Minute, "k0s status")
	c.until(time.Minute, "k0s kubectl get clusterrolebinding kubelet-bootstrap")

	w := newHost(t, "k0sh4")
	w.must("mkdir /var/lib/k0s && mount -t tmpfs tmpfs /var/lib/k0s && mkdir -p /etc/cni/net.d /opt/cni/bin && echo {} >/etc/cni/net.d/10-test.conflist")
	w.write("/etc/k0s/token", strings.TrimSpace(c.must("k0s token create --role worker --expiry 15m")))
	w.must("k0s install worker --token-file /etc/k0s/token --ignore-pre-flight-checks && k0s start")
	w.until(time.Minute, "k0s status")

	want := readRecording(t, "worker-status")
	sub(t, "status", []*host{c, w}, func(t *testing.T) {
		text, _, _ := strings.Cut(want, "null\n")
		if got := w.must("k0s status"); normal(got) != normal(text) {
			t.Errorf("got\n%s\nwant\n%s", got, text)
		}
		// Recorded without the ClusterConfig, which is null on a worker.
		recorded := block(t, "worker-status", "{", "}")
		recorded = strings.Replace(recorded, `"K0sVars"`, `"ClusterConfig": null, "K0sVars"`, 1)
		got := w.must("k0s status -o json")
		sameJSON(t, quotePid(normal(got)), quotePid(normal(recorded)))
		if got := w.must("k0s status -o yaml"); !strings.Contains(got, "\nRole: worker\n") || !strings.Contains(got, "\n  DataDir: /var/lib/k0s\n") {
			t.Errorf("as YAML: %s", got)
		}
	})
	sub(t, "unit", []*host{c, w}, func(t *testing.T) {
		unit := w.must("cat /etc/systemd/system/k0sworker.service")
		for line := range strings.Lines(want) {
			if strings.HasPrefix(line, "ExecStart=") && !strings.Contains(unit, "\n"+line) {
				t.Errorf("no %s in\n%s", line, unit)
			}
		}
	})
	sub(t, "refusals", []*host{c, w}, func(t *testing.T) {
		for command, prefix := range map[string]string{
			"k0s etcd member-list": "Error: can't list etcd", "k0s token create --role=worker": "Error: failed to read cluster CA",
		} {
			got := w.sh(command)
			if !strings.HasPrefix(got.Stderr, prefix) || !strings.Contains(want, "\n"+got.Stderr+"rc=1\n") || got.Code != 1 {
				t.Errorf("%s: %+v", command, got)
			}
		}
	})
	sub(t, "files", []*host{c, w}, func(t *testing.T) {
		got := listing(w.must(`find /var/lib/k0s -printf '%M %u:%g %s %p\n'`))
		for path, mode := range listing(want) {
			if got[path] != mode && !slices.ContainsFunc(prefixes(notMade), func(p string) bool { return strings.HasPrefix(path, p) }) {
				t.Errorf("%s is %q, the real one %q", path, got[path], mode)
			}
		}
	})
	sub(t, "idle", []*host{c, w}, func(t *testing.T) {
		w.must("touch /run/mark")
		n := len(c.must("k0s kubectl get lease -n kube-node-lease k0sh4 -o jsonpath={.spec.renewTime}"))
		if n == 0 {
			t.Error("no lease")
		}
		w.until(time.Minute, "test $(($(date +%s) - $(stat -c %Y /run/mark))) -ge 12")
		if got := w.must("find /etc /var/lib/k0s /run/k0s -newer /run/mark -type f"); got != "" {
			t.Errorf("written while idle: %s", got)
		}
	})
	sub(t, "restart", []*host{c, w}, func(t *testing.T) {
		w.must("rm /etc/k0s/token && k0s stop && k0s start")
		w.until(time.Minute, "k0s status")
		w.must("k0s stop")
		w.write("/etc/k0s/token", "spent")
	})
	sub(t, "reset", []*host{c, w}, func(t *testing.T) {
		w.must("mkdir /var/lib/k0s/kubelet/pods/volume && mount -t tmpfs tmpfs /var/lib/k0s/kubelet/pods/volume")
		if got := w.sh("k0s reset"); got.Code != 0 {
			t.Fatalf("%+v", got)
		}
		_, after, _ := strings.Cut(readRecording(t, "worker-reset"), "\nrc=0\n")
		if got := w.must("cd / && ls -1 /etc/cni/net.d /etc/k0s /opt/cni /var/lib/k0s"); got != after {
			t.Errorf("got\n%s\nwant\n%s", got, after)
		}
		if got := w.must("grep -c ' /var/lib/k0s' /proc/self/mounts"); got != "1\n" {
			t.Errorf("%s mounts are left at or below the data directory", strings.TrimSpace(got))
		}
	})
}

func prefixes(m map[string]string) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	return out
}

func quotePid(s string) string { return strings.Replace(s, "<pid>", `"<pid>"`, 1) }
