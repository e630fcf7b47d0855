package sandboxtest_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/examples/sandbox/sandboxtest"
)

// processesIn are the processes of this machine whose namespace of processes is one of these, as
// "number command". Every process of a sandbox is in its supervisor's or in one below that.
func processesIn(t *testing.T, namespaces map[string]bool) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if ns, err := os.Readlink(filepath.Join("/proc", e.Name(), "ns/pid")); err == nil && namespaces[ns] {
			cmdline, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline")) // it may end meanwhile
			out = append(out, e.Name()+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	return out
}

// hold opens the namespaces of processes that these processes are in. The kernel gives the number
// of one that is gone to the next that is made, but not while it is open.
func hold(t *testing.T, pids []string) map[string]bool {
	t.Helper()
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, pid := range pids {
		path := filepath.Join("/proc", pid, "ns/pid")
		ns, err := os.Readlink(path)
		if err != nil || ns == own || out[ns] {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			continue // it has ended
		}
		t.Cleanup(func() { _ = f.Close() })
		out[ns] = true
	}
	return out
}

// descendants are a process and all below it.
func descendants(t *testing.T, root int) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	parent := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue
		}
		_, after, _ := strings.Cut(string(data), ") ")
		if f := strings.Fields(after); len(f) > 1 {
			parent[e.Name()] = f[1]
		}
	}
	var out []string
	for pid := range parent {
		for p := pid; p != "" && p != "0"; p = parent[p] {
			if p == fmt.Sprint(root) {
				out = append(out, pid)
				break
			}
		}
	}
	return out
}

// machine is what the sandbox might have left on the machine besides processes.
func machine(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	out["mounts"] = string(mounts)
	links, err := os.ReadFile("/proc/self/net/dev")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(links)) {
		if name, _, ok := strings.Cut(line, ":"); ok {
			names = append(names, strings.TrimSpace(name))
		}
	}
	out["network devices"] = strings.Join(names, " ")
	named, _ := filepath.Glob("/run/netns/*")
	out["named network namespaces"] = strings.Join(named, " ")
	var groups []string
	err = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			groups = append(groups, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	out["cgroups"] = strings.Join(groups, "\n")
	return out
}

func TestNothingIsLeft(t *testing.T) {
	for _, how := range []string{"kill -9", "down"} {
		t.Run(how, func(t *testing.T) {
			before := machine(t)
			c := sandboxtest.New(t, sandboxtest.Config{Spare: 2, Bastion: true, HostsOnly: how == "down"})
			// Something of each host's own that does not end by being asked.
			for _, name := range c.Hosts() {
				c.Host(name).Sh("(trap '' TERM HUP INT; sleep 1000 & setsid sh -c 'trap \"\" TERM; sleep 1000') >/dev/null 2>&1 &")
			}
			theirs := hold(t, descendants(t, c.Pid()))
			if n := len(processesIn(t, theirs)); n < 3*len(c.Hosts()) || len(theirs) != len(c.Hosts())+1 {
				t.Fatalf("only %d processes in %d namespaces seen in a sandbox of %d hosts: the test looks at the wrong thing", n, len(theirs), len(c.Hosts()))
			}
			if how == "down" {
				if err := c.Client().Down(t.Context()); err != nil {
					t.Fatal(err)
				}
			} else if err := syscall.Kill(c.Pid(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			select {
			case <-c.Ended():
			case <-time.After(20 * time.Second):
				t.Fatal("the supervisor has not ended")
			}
			if left := processesIn(t, theirs); len(left) > 0 {
				t.Errorf("processes are left:\n%s", strings.Join(left, "\n"))
			}
			for what, was := range before {
				if is := machine(t)[what]; is != was {
					t.Errorf("%s before:\n%s\nand after:\n%s", what, was, is)
				}
			}
		})
	}
}

func TestSeveralSideBySide(t *testing.T) {
	a := sandboxtest.New(t, sandboxtest.Config{Spare: 1, HostsOnly: true})
	b := sandboxtest.New(t, sandboxtest.Config{Spare: 1, HostsOnly: true})
	a.Host("h1").WriteFile("/root/whose", []byte("a"), 0o600)
	b.Host("h1").WriteFile("/root/whose", []byte("b"), 0o600)
	for want, c := range map[string]*sandboxtest.Cluster{"a": a, "b": b} {
		if got := output(t, dial(t, c, "root", "10.99.0.21"), "cat /root/whose"); got != want {
			t.Errorf("in %s is %q", want, got)
		}
	}
	if err := a.Client().Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := b.Host("h1").Exec("cat", "/root/whose"); got != "b" {
		t.Errorf("after the other one ended: %q", got)
	}
}
