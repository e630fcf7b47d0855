package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/hosts/hoststest"
	"github.com/mkesdk/mkesdk/transport"
	"github.com/mkesdk/mkesdk/transport/transporttest"
)

// How long a worker that was started takes to get its own kubeconfig, to
// register its node, and to be Ready.
const (
	kubeconfAfter   = 2 * time.Second
	registeredAfter = 4 * time.Second
	readyAfter      = 8 * time.Second
)

// Paths of a worker.
const (
	k0sFile   = "/usr/local/bin/k0s"
	tokenFile = "/etc/k0s/k0stoken"
	kubeconf  = "/var/lib/k0s/kubelet.conf"
	unitFile  = "/etc/systemd/system/k0sworker.service"
	unit      = "k0sworker.service"
)

// A Host is a machine that runs commands.
type Host struct {
	Name, Address string
	Unreachable   bool

	w    *World
	conn *transporttest.Host

	mu      sync.Mutex
	m       hoststest.Machine
	token   string    // the id of the join token that it started with
	started time.Time // of the service; zero if it does not run
	late    time.Duration
	answers time.Duration // after its start, if that is later than at once
	deaf    bool          // it never registers until its service is restarted
	log     []string
}

// AddHost puts a clean Ubuntu 24.04 host beside the cluster.
func (w *World) AddHost(name, address string) *Host {
	h := &Host{Name: name, Address: address, w: w, m: hoststest.Ubuntu(name, address), late: readyAfter}
	h.m.Gateway = "10.0.0.1"
	h.conn = transporttest.New(w.t, "root@"+address+":22")
	h.handle()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hosts[address] = h
	return h
}

// Hosts returns the hosts, by name.
func (w *World) Hosts() []*Host {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.SortedFunc(maps.Values(w.hosts), func(a, b *Host) int { return strings.Compare(a.Name, b.Name) })
}

// HostNamed returns the host of that name, or nil.
func (w *World) HostNamed(name string) *Host {
	for _, h := range w.Hosts() {
		if h.Name == name {
			return h
		}
	}
	return nil
}

// TokenFiles returns how many hosts have a join token in a file.
func (w *World) TokenFiles() (n int) {
	for _, h := range w.Hosts() {
		if _, there := h.conn.File(tokenFile); there {
			n++
		}
	}
	return n
}

// Set makes a host what the words of a transcript say: binary, joined,
// ca=other, never-registers, no-kubeconf, token-left, unit=STATE, answers-after=DURATION,
// ready-after=DURATION.
func (h *Host) Set(t testing.TB, words ...string) {
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "binary":
			h.m = h.m.WithK0s(K0sVersion)
		case "joined":
			h.m = h.m.WithK0s(K0sVersion).WithService("worker", "active", "--token-file="+tokenFile, "--data-dir=/var/lib/k0s")
			h.m = h.m.WithFile(kubeconf, hoststest.Kubeconfig([]byte(ThisCA), "https://10.0.0.11:6443"))
			h.m.StatusRole, h.started = "worker", time.Now().Add(-time.Hour)
		case "ca":
			h.m = h.m.WithFile(kubeconf, hoststest.Kubeconfig([]byte(otherCA), "https://10.9.9.9:6443"))
			h.deaf = true // to this cluster
		case "never-registers":
			h.deaf = true
		case "no-kubeconf":
			token, err := hoststest.Token([]byte(ThisCA), "https://10.0.0.11:6443", "000000.0000000000000000")
			if err != nil {
				t.Fatal(err)
			}
			h.m = h.m.WithFile(tokenFile, token)
			h.conn.SetFile(tokenFile, transporttest.File{Data: token, Mode: "0600"})
			delete(h.m.Files, kubeconf)
		case "token-left":
			token, err := hoststest.Token([]byte(ThisCA), "https://10.0.0.11:6443", "abcdef.0123456789abcdef")
			if err != nil {
				t.Fatal(err)
			}
			h.w.tokens.valid["abcdef"] = true
			h.conn.SetFile(tokenFile, transporttest.File{Data: token + "\n", Mode: "0600"})
		case "unit":
			h.m = h.m.WithService("worker", value, "--token-file="+tokenFile, "--data-dir=/var/lib/k0s")
			h.m.StatusRole, h.started = "", time.Time{}
		case "answers-after":
			d, err := time.ParseDuration(value)
			if err != nil {
				t.Fatal(err)
			}
			h.m.StatusRole, h.started, h.answers = "", time.Now(), d
		case "ready-after":
			d, err := time.ParseDuration(value)
			if err != nil {
				t.Fatal(err)
			}
			h.started, h.late = time.Now(), d
		default:
			t.Fatalf("host: no %q", word)
		}
	}
}

// MachineID returns the host's machine-id.
func (h *Host) MachineID() string { return h.m.MachineID }

// Log returns the commands that changed something on the host, in order.
func (h *Host) Log() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.log)
}

func (h *Host) nodeName() string { return strings.ToLower(h.m.Hostname) }

// has says whether there is such a file. The files that were written over the
// connection count like those the host came with.
func (h *Host) has(name string) bool {
	_, written := h.conn.File(name)
	_, there := h.m.Files[name]
	return written || there
}

// kubelet says how far the host's worker has come by now.
func (h *Host) kubelet() (registered, ready bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settle()
	if h.started.IsZero() || h.deaf || h.m.Files[kubeconf] == "" {
		return false, false
	}
	run := time.Since(h.started)
	return run >= min(registeredAfter, h.late), run >= h.late
}

// settle brings the host up to the moment.
func (h *Host) settle() {
	if f, ok := h.conn.File(tokenFile); ok {
		h.m.Files[tokenFile] = f.Data
	} else {
		delete(h.m.Files, tokenFile)
	}
	if h.answers > 0 && !h.started.IsZero() && time.Since(h.started) >= h.answers {
		h.m.StatusRole, h.answers = "worker", 0
	}
	if !h.started.IsZero() && h.m.Files[kubeconf] == "" && h.token != "" && time.Since(h.started) >= kubeconfAfter {
		h.m.Files[kubeconf] = hoststest.Kubeconfig([]byte(ThisCA), "https://10.0.0.11:6443")
	}
}

// labels are those that the kubelet registers its node with.
func (h *Host) labels() map[string]string {
	labels := map[string]string{"kubernetes.io/hostname": h.nodeName()}
	_, after, ok := strings.Cut(h.m.Files[unitFile], "--labels=")
	if !ok {
		return labels
	}
	list, _, _ := strings.Cut(after, "\n")
	list, _, _ = strings.Cut(list, " ")
	for pair := range strings.SplitSeq(list, ",") {
		k, v, _ := strings.Cut(pair, "=")
		labels[k] = v
	}
	return labels
}

func (h *Host) installController() {
	h.m = h.m.WithK0s(K0sVersion).WithService("controller", "active", "--config=/etc/k0s/k0s.yaml", "--enable-worker=true", "--data-dir=/var/lib/k0s")
	h.m = h.m.WithFile("/var/lib/k0s/pki/ca.crt", ThisCA)
	h.m.StatusRole = "controller"
}

func sum(content string) string {
	s := sha256.Sum256([]byte(content))
	return hex.EncodeToString(s[:])
}

func (h *Host) String() string { return fmt.Sprintf("%s (%s)", h.Name, h.Address) }

// shown is a command as the log has it: without what differs from run to run.
func shown(cmd transport.Command) string {
	words := strings.Fields(cmd.String())
	for i, w := range words {
		if dir, base := path.Split(w); strings.HasPrefix(base, ".mkesdk-") {
			words[i] = dir + ".mkesdk-DIGEST"
		}
		if strings.HasPrefix(w, "tok") && i > 0 && words[i-1] == "invalidate" {
			words[i] = "ID"
		}
	}
	return strings.Join(words, " ")
}
