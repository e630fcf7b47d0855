package k0s

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/control"
)

// The test program plays all parts: it is k0s, etcd and systemctl when called by those names, the
// first process of a host, and the tests proper, in a network namespace of their own.
const (
	envInside = "K0S_TEST_INSIDE"
	hostName  = "test-host" // argv[0] of a host's first process

	// Where the programs are on a host.
	hostProgram = "/run/bin/program"
	hostTools   = "/run/bin/tools"
)

func TestMain(m *testing.M) {
	switch name := filepath.Base(os.Args[0]); name {
	case "k0s":
		os.Exit(Main(background(), os.Args, os.Stdin, os.Stdout, os.Stderr))
	case "etcd":
		control.EtcdMain(os.Args)
	case "systemctl":
		os.Exit(fakeSystemctl(os.Args[1:]))
	case unitName:
		os.Exit(fakeUnit(os.Args[1]))
	case hostName:
		os.Exit(hostMain(os.Args[1]))
	}
	os.Exit(m.Run())
}

// host is a machine made of namespaces, with its own name, /etc, /run, /var/lib and processes.
type host struct {
	t    *testing.T
	name string
	mu   sync.Mutex
	in   *json.Encoder
	out  *json.Decoder
}

type request struct {
	Shell   string
	Timeout time.Duration
}

type reply struct {
	Stdout, Stderr string
	Code           int
}

// newHost starts a host. It ends with the test.
func newHost(t *testing.T, name string) *host {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", name)
	cmd.Args[0] = hostName
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC, Pdeathsig: syscall.SIGKILL,
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The host ends with its input, and everything in it with its first process.
	t.Cleanup(func() {
		if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
			t.Logf("host %s: %v", name, err)
		}
	})
	return &host{t: t, name: name, in: json.NewEncoder(in), out: json.NewDecoder(out)}
}

// sub runs a subtest on hosts, which report to it meanwhile.
func sub(t *testing.T, name string, hosts []*host, f func(*testing.T)) {
	t.Run(name, func(s *testing.T) {
		for _, h := range hosts {
			h.t = s
			defer func() { h.t = t }()
		}
		f(s)
	})
}

// sh runs a shell command on the host.
func (h *host) sh(command string) reply {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	var r reply
	if err := h.in.Encode(request{Shell: command, Timeout: time.Minute}); err != nil {
		h.t.Fatalf("%s: %v", h.name, err)
	}
	if err := h.out.Decode(&r); err != nil {
		h.t.Fatalf("%s: %s: %v", h.name, command, err)
	}
	return r
}

// must runs a shell command that has to succeed and gives its output.
func (h *host) must(command string) string {
	h.t.Helper()
	r := h.sh(command)
	if r.Code != 0 {
		h.t.Fatalf("%s: %s: status %d\n%s%s\n%s", h.name, command, r.Code, r.Stdout, r.Stderr, h.journal())
	}
	return r.Stdout
}

// until repeats a shell command until it succeeds, for at most the time, and gives its output.
func (h *host) until(limit time.Duration, command string) string {
	h.t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		r := h.sh(command)
		if r.Code == 0 {
			return r.Stdout
		}
		if time.Now().After(end) {
			h.t.Fatalf("%s: %s: still status %d after %v\n%s%s\n%s", h.name, command, r.Code, limit, r.Stdout, r.Stderr, h.journal())
		}
	}
}

// write puts a file on the host.
func (h *host) write(name, text string) {
	h.t.Helper()
	h.must(fmt.Sprintf("mkdir -p %s && cat >%s <<'---'\n%s\n---\nchmod 600 %s", filepath.Dir(name), name, text, name))
}

func (h *host) journal() string { return h.sh("tail -n 40 /run/units/*.log").Stdout }

// hostMain is the first process of a host: it makes the host's own file systems and then runs what
// it is told to on standard input.
func hostMain(name string) int {
	if err := makeHost(name); err != nil {
		fmt.Fprintln(os.Stderr, "host", name+":", err)
		return 1
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var q request
		if err := in.Decode(&q); err != nil {
			if errors.Is(err, io.EOF) {
				return 0
			}
			return 1
		}
		if err := out.Encode(q.run()); err != nil {
			return 1
		}
	}
}

func (q request) run() reply {
	cmd := exec.Command("timeout", "-k1", fmt.Sprint(q.Timeout.Seconds()), "/bin/sh", "-c", q.Shell)
	var o, e strings.Builder
	cmd.Stdout, cmd.Stderr, cmd.Dir = &o, &e, "/"
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", control.EnvTools + "=" + hostTools}
	err := cmd.Run()
	r := reply{Stdout: o.String(), Stderr: e.String(), Code: cmd.ProcessState.ExitCode()}
	if err != nil && r.Code == 0 {
		r.Code, r.Stderr = -1, r.Stderr+err.Error()
	}
	return r
}

func makeHost(name string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	mount := func(source, target, kind string, flags uintptr, data string) {
		if err == nil {
			if e := syscall.Mount(source, target, kind, flags, data); e != nil {
				err = fmt.Errorf("mount %s: %w", target, e)
			}
		}
	}
	if err := syscall.Sethostname([]byte(name)); err != nil {
		return err
	}
	mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	mount("proc", "/proc", "proc", 0, "")
	mount("tmpfs", "/run", "tmpfs", 0, "mode=755")
	if err != nil {
		return err
	}
	for _, dir := range []string{"/run/etc/upper", "/run/etc/work", "/run/units", hostTools} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	// The programs are about to disappear under the mounts, and users must be able to reach them.
	if err := os.WriteFile(hostProgram, nil, 0o755); err != nil {
		return err
	}
	mount(self, hostProgram, "", syscall.MS_BIND, "")
	if dir := os.Getenv(control.EnvTools); dir != "" {
		mount(dir, hostTools, "", syscall.MS_BIND, "")
	}
	for _, dir := range []string{"/var/lib", "/root", "/opt", "/usr/local/bin"} {
		mount("tmpfs", dir, "tmpfs", 0, "mode=755")
	}
	mount("overlay", "/etc", "overlay", 0, "lowerdir=/etc,upperdir=/run/etc/upper,workdir=/run/etc/work")
	if err != nil {
		return err
	}
	for _, name := range []string{"k0s", "systemctl"} {
		if err := os.Symlink(hostProgram, "/usr/local/bin/"+name); err != nil {
			return err
		}
	}
	id := fmt.Sprintf("%032x\n", []byte(name))
	return errors.Join(os.WriteFile("/etc/machine-id", []byte(id[len(id)-33:]), 0o444), os.WriteFile("/etc/hosts", []byte("127.0.0.1 localhost\n"), 0o644))
}
