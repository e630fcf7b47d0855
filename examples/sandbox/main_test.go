package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/cluster"
)

// asSandbox is the name under which the test program is the sandbox's command line. Under the
// other names it is what the sandbox's binary is under them, so a sandbox can be made of it.
const asSandbox = "sandbox"

func TestMain(m *testing.M) {
	self, err := os.Executable()
	if err == nil && filepath.Base(os.Args[0]) == filepath.Base(self) && !started(os.Args) {
		os.Exit(m.Run())
	}
	os.Exit(run(context.Background(), os.Args))
}

// started reports whether this is the built-in SSH server of a host.
func started(args []string) bool { return len(args) > 1 && !strings.HasPrefix(args[1], "-test.") }

// sandbox prepares a command of the sandbox's, for a state directory of the test's own.
func sandbox(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Args = append([]string{asSandbox}, args...)
	cmd.Env = append(os.Environ(), "MKESDK_SANDBOX_DIR="+dir)
	return cmd
}

// does runs a command of the sandbox's and returns what it printed.
func does(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	out, err := sandbox(t, dir, args...).CombinedOutput()
	return string(out), err
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a sandbox is made of namespaces, which takes root; run the tests as root")
	}
}

func TestCommands(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	t.Cleanup(func() {
		if c, err := cluster.Open(context.Background(), dir); err == nil {
			_ = c.Down(context.Background())
		}
	})
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{"status", 1, "no sandbox is running; start one with: go run . up"},
		{"down", 0, "no sandbox is running"},
		{"up --hosts-only --spare 1 --ssh telnet", 1, `SSH server "telnet": want "openssh" or "builtin"`},
		{"up --hosts-only --spare 1", 0, "h1       spare       10.99.0.21"},
		{"up --hosts-only", 0, "a sandbox is running already"},
		{"status", 0, "h4       spare       10.98.0.24 through bastion  up"},
		{"ssh h1 hostname", 0, "h1\n"},
		{"ssh h1 -- false", 1, ""},
		{"ssh h9 true", 1, `there is no host "h9"`},
		{"exec -- kubectl version --client", 0, "v1.37.2"},
		{"logs h1", 0, "ssh.log"},
		{"break h1 melt", 1, `fault "melt": want one of [kill start reboot cut heal]`},
		{"break h1 kill", 0, ""},
		{"status", 0, "10.99.0.21                  down"},
		{"ssh h1 true", 1, "the host is down"},
		{"break h1 start", 0, ""},
		{"break h1 cut", 0, ""},
		{"status", 0, "up, cut off"},
		{"down", 0, "nothing of it is left"},
		{"ssh h1 true", 1, "no sandbox is running"},
	} {
		out, err := does(t, dir, strings.Fields(c.args)...)
		code := 0
		if ee, ok := errors.AsType[*exec.ExitError](err); ok {
			code = ee.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if code != c.status || !strings.Contains(out, c.want) {
			t.Errorf("sandbox %s: status %d, want %d; printed %q, want something with %q", c.args, code, c.status, out, c.want)
		}
	}
}

// A sandbox in the foreground ends with Ctrl-C, and with its process however that ends.
func TestForeground(t *testing.T) {
	needRoot(t)
	for name, sig := range map[string]syscall.Signal{"Ctrl-C": syscall.SIGINT, "kill -9": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cmd := sandbox(t, dir, "up", "--hosts-only", "--spare", "1", "--foreground")
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			waitFor(t, stderr, "Ctrl-C ends it")
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			rest, _ := io.ReadAll(stderr) // a process that is killed may cut it short
			err = cmd.Wait()
			if sig == syscall.SIGINT && (err != nil || !bytes.Contains(rest, []byte("nothing of it is left"))) {
				t.Errorf("%v, and it said %q", err, rest)
			}
			waitDown(t, dir)
		})
	}
}

func waitFor(t *testing.T, r io.Reader, want string) {
	t.Helper()
	var all strings.Builder
	b := bufio.NewReader(r)
	for {
		line, err := b.ReadString('\n')
		all.WriteString(line)
		if strings.Contains(line, want) {
			return
		}
		if err != nil {
			t.Fatalf("it never said %q but %q: %v", want, all.String(), err)
		}
	}
}

func waitDown(t *testing.T, dir string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(20 * time.Second); ; {
		_, err := cluster.Open(t.Context(), dir)
		if errors.Is(err, cluster.ErrNotRunning) {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("the sandbox still runs: %v", err)
		}
	}
}
