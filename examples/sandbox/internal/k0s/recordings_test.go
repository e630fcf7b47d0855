package k0s

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// notPlayedIn are commands of the recordings that the stand-in refuses, and why.
var notPlayedIn = map[string]string{
	"k0s etcd leave":                  "controllers are not removed yet",
	"k0s backup --save-path /tmp":     "backups are not taken yet",
	"k0s backup --save-path /root/bk": "backups are not taken yet",
	"k0s sysinfo":                     "nothing of the SDK asks for it",
}

// A host that never had a k0s: everything fails as it does for real, and reset does not.
func TestNotRunning(t *testing.T) {
	if !inNetwork(t) {
		return
	}
	h := newHost(t, "k0sh1")
	h.must("mkdir /var/lib/k0s")
	for _, r := range recording(t, "not-running") {
		switch why, out := notPlayedIn[r.command]; {
		case out:
			if got := h.sh(r.command); got.Code != 1 || !strings.Contains(got.Stderr, "not part of the stand-in") {
				t.Errorf("%s (%s): %+v", r.command, why, got)
			}
		case strings.HasPrefix(r.command, "k0s "):
			r.compare(t, h.sh(r.command))
		}
	}
	if got := h.must("ls -d /run/k0s /etc/k0s /var/lib/k0s/* 2>/dev/null || true"); got != "" {
		t.Errorf("left on the host: %s", got)
	}
}

// recordedYAML asks for the controller of the recordings: the values in which the ClusterConfig
// that it reported differs from k0s's defaults.
const recordedYAML = `apiVersion: k0s.k0sproject.io/v1beta1
kind: ClusterConfig
metadata: {name: k0s}
spec:
  api:
    address: 10.99.0.11
    sans: [10.99.0.11, k0sh1]
  storage:
    type: etcd
    etcd:
      peerAddress: 10.99.0.11
  network:
    provider: custom
    kubeProxy: {disabled: true}
  telemetry: {enabled: false}
  workerProfiles:
    - name: default
      values: {cgroupsPerQOS: true, enforceNodeAllocatable: [], evictionHard: {}, failCgroupV1: false, imageGCHighThresholdPercent: 100, imageGCLowThresholdPercent: 99}`

const recordedDisabled = "konnectivity-server,coredns,kube-proxy,metrics-server,helm,update-prober,network-provider,windows-node,kube-controller-manager,kube-scheduler"

// A controller, from install to reset.
func TestController(t *testing.T) {
	needTools(t)
	if !inNetwork(t, "10.99.0.11/32") {
		return
	}
	h := newHost(t, "k0sh1")
	h.must("mkdir /var/lib/k0s && mount -t tmpfs tmpfs /var/lib/k0s")
	h.write("/etc/k0s/k0s.yaml", recordedYAML)
	h.write("/etc/k0s/token", "a token that a reset keeps")
	h.must("k0s install controller --disable-components=" + recordedDisabled + " -c /etc/k0s/k0s.yaml && k0s start")
	h.until(time.Minute, "k0s status")
	h.until(time.Minute, "k0s kubectl get etcdmember k0sh1 -o jsonpath={.status.memberID} | grep .")
	h.until(time.Minute, "k0s kubectl get controlnode k0sh1 -o jsonpath={.status.k0sVersion} | grep .")

	sub(t, "unit", []*host{h}, func(t *testing.T) {
		want := block(t, "healthy-1", "[Unit]", "WantedBy=multi-user.target")
		if got := h.must("cat /etc/systemd/system/k0scontroller.service"); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
	sub(t, "healthy", []*host{h}, func(t *testing.T) {
		for _, r := range recording(t, "healthy-1") {
			r.lines = before(r.lines, "●") // of systemctl status, which follows
			if strings.HasSuffix(r.command, "get crd") {
				// A newer kubectl shows more columns; the names are what is the cluster's.
				if got := firstWords(h.must(r.command)); !slices.Equal(got, firstWords(strings.Join(r.lines, "\n"))) {
					t.Errorf("%s: %q", r.command, got)
				}
				continue
			}
			r.compare(t, h.sh(r.command))
		}
	})
	sub(t, "order of status", []*host{h}, func(t *testing.T) {
		want := block(t, "healthy-1", "{", "}")
		if got := h.must("k0s status -o json"); normal(got) != normal(want) {
			t.Error("k0s status -o json has the recorded lines in another order")
		}
	})
	sub(t, "files", []*host{h}, func(t *testing.T) { controllerFiles(t, h) })
	sub(t, "processes", []*host{h}, func(t *testing.T) { controllerProcesses(t, h) })
	sub(t, "misc", []*host{h}, func(t *testing.T) { controllerMisc(t, h) })
	sub(t, "reset", []*host{h}, func(t *testing.T) {
		h.must("k0s stop")
		if got := h.sh("systemctl is-active k0scontroller"); got.Stdout != "inactive\n" {
			t.Errorf("after k0s stop: %q", got.Stdout)
		}
		reset := h.sh("k0s reset")
		if want := `time="…" level=warning msg="To ensure a full reset, a node reboot is recommended."` + "\n"; reset.Code != 0 || normal(reset.Stderr) != want {
			t.Errorf("k0s reset: %+v", reset)
		}
		_, after, _ := strings.Cut(readRecording(t, "reset-after-leave"), "\nrc=0\n")
		var want []string
		for line := range strings.Lines(after) {
			if f := strings.Fields(line); len(f) == 9 && len(f[0]) == 10 && f[8] != "." && f[8] != ".." {
				want = append(want, f[0]+" "+f[8])
			}
		}
		got := strings.Fields(strings.ReplaceAll(h.must("stat -c '%A_%n' /etc/k0s/*"), "/etc/k0s/", ""))
		for i := range got {
			got[i] = strings.Replace(got[i], "_", " ", 1)
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("/etc/k0s: got %q, want %q", got, want)
		}
		if left := h.must("ls -A /var/lib/k0s; ls -d /run/k0s /etc/systemd/system/k0s* 2>/dev/null; id -u etcd kube-apiserver 2>/dev/null; true"); left != "" {
			t.Errorf("left on the host: %s", left)
		}
	})
}

func firstWords(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		out = append(out, word)
	}
	return out
}

func before(lines []string, prefix string) []string {
	if i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, prefix) }); i >= 0 {
		return lines[:i]
	}
	return lines
}

// controllerFiles: each recorded file is there with its mode and owner, and no other.
func controllerFiles(t *testing.T, h *host) {
	want := listing(readRecording(t, "files-1"))
	absent := map[string]string{"/run/k0s/k0s-control-api.pid": "the join API is not played yet"}
	more := map[string]string{
		"/run/k0s/audit.log": "the sandbox's own", "/run/k0s/audit-policy.yaml": "the sandbox's own",
	}
	got := listing(h.must(`find /run/k0s /var/lib/k0s -not -path '*/member/*/*' -printf '%M %u:%g %s %p\n'`))
	for path, mode := range want {
		if _, out := absent[path]; out {
			continue
		}
		if got[path] != mode {
			t.Errorf("%s is %q, the real one %q", path, got[path], mode)
		}
	}
	for path := range got {
		if _, ours := more[path]; !ours && want[path] == "" {
			t.Errorf("%s is none of the real k0s's files", path)
		}
	}
}

// controllerProcesses: etcd and the API server run as their users, with k0s's arguments.
func controllerProcesses(t *testing.T, h *host) {
	differs := map[string]string{
		"audit-log-path": "the sandbox's own", "audit-policy-file": "the sandbox's own", "feature-gates": "empty",
		"shutdown-watch-termination-grace-period": "shorter, so that stopping is quick",
	}
	flags := regexp.MustCompile(`--([a-z0-9-]+)=(\S*)`)
	parse := func(line string) map[string]string {
		out := map[string]string{}
		for _, m := range flags.FindAllStringSubmatch(line, -1) {
			if differs[m[1]] == "" {
				out[m[1]] = m[2]
			}
		}
		return out
	}
	for name, user := range map[string]string{"etcd": "etcd", "kube-apiserver": "kube-ap"} {
		var want string
		for line := range strings.Lines(readRecording(t, "files-1")) {
			if strings.Contains(line, "/usr/local/bin/"+name+" ") {
				want = line
			}
		}
		got := h.must("ps -ww -o user=,args= -p $(cat /run/k0s/" + name + ".pid)")
		if !strings.HasPrefix(got, user) {
			t.Errorf("%s runs as %.12q", name, got)
		}
		if a, b := parse(got), parse(want); !reflect.DeepEqual(a, b) {
			for k := range b {
				if a[k] != b[k] {
					t.Errorf("%s: --%s=%s, the real one has %q", name, k, a[k], b[k])
				}
			}
			for k := range a {
				if _, ok := b[k]; !ok {
					t.Errorf("%s: the real one has no --%s", name, k)
				}
			}
		}
	}
}

// controllerMisc: what is refused while k0s runs, and the tokens.
func controllerMisc(t *testing.T, h *host) {
	h.must("k0s token create --role=worker")
	for _, r := range recording(t, "misc-controller") {
		if !strings.HasPrefix(r.command, "k0s ") {
			continue
		}
		if _, rest, ok := strings.Cut(strings.Join(r.lines, "\n"), "\nevents: {}"); ok && rest != "" && strings.Contains(r.command, "token list") {
			r.lines = before(r.lines, "events:")
		}
		got := h.sh(r.command)
		switch {
		case notPlayedIn[r.command] != "":
			if got.Code != 1 || !strings.Contains(got.Stderr, "not part of the stand-in") {
				t.Errorf("%s: %+v", r.command, got)
			}
		case strings.HasPrefix(r.command, "k0s token create"):
			// Recorded was its length alone, with the newline; keys and names differ by a little.
			if n := len(got.Stdout); n < 1600 || n > 1900 || !strings.HasPrefix(got.Stdout, "H4sIAAAAAAAC/") {
				t.Errorf("%s: %d bytes, %.20s", r.command, n, got.Stdout)
			}
		case strings.HasPrefix(r.command, "k0s token list"):
			if len(got.Stdout) == 0 || !tokenTable(got.Stdout) || !tokenTable(strings.Join(r.lines, "\n")+"\n") {
				t.Errorf("%s: %q, the real one %q", r.command, got.Stdout, r.lines)
			}
		case strings.HasPrefix(r.command, "k0s status components"):
			if !strings.Contains(got.Stdout, strings.Join(r.lines, "\n")) {
				t.Errorf("%s: %q", r.command, got.Stdout)
			}
		default:
			r.compare(t, got)
		}
	}
	if r := h.sh("k0s token create --role=foo"); r.Stderr != `Error: unsupported role "foo"; supported roles are "controller" and "worker"`+"\n" || r.Code != 1 {
		t.Errorf("a bad role: %+v", r)
	}
	if r := h.sh("k0s token list"); r.Code != 1 || !strings.HasPrefix(r.Stderr, `Error: unsupported role ""`) {
		t.Errorf("token list without a role: %+v", r)
	}
	id, _, _ := strings.Cut(strings.Split(h.must("k0s token list --role controller"), "\n")[1], " ")
	if got := h.must("k0s token invalidate " + id); got != "token "+id+" deleted successfully\n" {
		t.Errorf("token invalidate: %q", got)
	}
	if h.sh("k0s kubectl -n kube-system get secret bootstrap-token-"+id).Code == 0 {
		t.Error("the invalidated token is still there")
	}
}

// tokenTable tells whether a text has the form of the recorded table: columns three blanks apart.
func tokenTable(s string) bool {
	return regexp.MustCompile(`^ID       ROLE     (    )?EXPIRES AT\n([a-z0-9]{6}   (controller   |worker   )(<time>)?\n)+$`).MatchString(normal(s))
}

// sameJSON compares two JSON texts without regard to form.
func sameJSON(t *testing.T, got, want string) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(got), &a); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatalf("%v: %s", err, want)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
