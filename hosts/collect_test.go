package hosts

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/transport"
)

// localConn runs commands on this machine, under a shell of choice.
type localConn struct {
	shell  string
	env    []string
	script string // in the place of the real one
	root   string // of the file system that it looks at
}

func (c localConn) Run(ctx context.Context, cmd transport.Command) error {
	args := slices.Clone(cmd.Args[1:])
	if c.script != "" {
		args[1] = c.script
	}
	if filepath.Base(c.shell) == "busybox" {
		args = append([]string{"sh"}, args...)
	}
	if c.root != "" {
		args = append(args, c.root)
	}
	x := exec.CommandContext(ctx, c.shell, args...)
	x.Env, x.Stdout, x.Stderr = c.env, cmd.Stdout, cmd.Stderr
	return x.Run()
}
func (c localConn) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.ErrUnsupported
}
func (c localConn) Close() error   { return nil }
func (c localConn) String() string { return "root@here:22" }

// TestCollectHere runs the script on the machine that the test runs on: whatever it
// is, the script gets through under each shell that is there.
func TestCollectHere(t *testing.T) {
	for _, shell := range []string{"dash", "bash", "busybox"} {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("no %s on this machine", shell)
			}
			f, err := Collect(t.Context(), localConn{shell: path}, CollectOptions{Timeout: 5 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if missing := f.Missing(); f.Hostname == "" || f.Kernel == "" || f.CPUs < 1 || f.MemoryBytes < 1 || f.Clock.Known != Yes || f.Clock.Skew.Abs() > time.Minute || f.DataDisk.Type == "" {
				t.Errorf("missing %q in %+v", missing, f)
			}
		})
	}
}

// funcConn runs commands by a func.
type funcConn struct {
	localConn
	run func(transport.Command) error
}

func (c funcConn) Run(_ context.Context, cmd transport.Command) error { return c.run(cmd) }

// TestCollectCommand: one command, that only looks, as root; the directories and
// the time-out are handed on.
func TestCollectCommand(t *testing.T) {
	for name, c := range map[string]struct {
		o    CollectOptions
		want []string // after the marker
	}{
		"defaults": {CollectOptions{}, []string{"/var/lib/k0s", "", "10"}},
		"given":    {CollectOptions{DataDir: "/d", KubeletRootDir: "/k", Timeout: 1500 * time.Millisecond}, []string{"/d", "/k", "2"}},
	} {
		var cmds []transport.Command
		_, err := Collect(t.Context(), funcConn{run: func(cmd transport.Command) error { cmds = append(cmds, cmd); return nil }}, c.o)
		if err == nil || !strings.Contains(err.Error(), "gathering the facts of root@here:22") {
			t.Errorf("%s: nothing came back, and the error is %v", name, err)
		}
		if len(cmds) != 1 {
			t.Fatalf("%s: %d commands", name, len(cmds))
		}
		cmd := cmds[0]
		if !cmd.Sudo || cmd.Effect != transport.EffectNone || cmd.Args[0] != "/bin/sh" || cmd.Args[1] != "-c" || !slices.Equal(cmd.Args[5:], c.want) {
			t.Errorf("%s: %v, %q", name, cmd.Effect, cmd.Args[5:])
		}
		if !strings.HasPrefix(cmd.Args[2], "# mkesdk: facts\n") || !strings.Contains(cmd.String(), "facts") || len(cmd.String()) > 200 {
			t.Errorf("%s: shown as %s", name, cmd)
		}
	}
	markers := map[string]bool{}
	for range 3 {
		_, marker, err := CollectOptions{}.command()
		if err != nil || markers[marker] || len(marker) < 32 {
			t.Errorf("marker %q, %v", marker, err)
		}
		markers[marker] = true
	}
}

func TestCollectErrors(t *testing.T) {
	for _, o := range []CollectOptions{{DataDir: "k0s"}, {DataDir: "/"}, {DataDir: "/a/"}, {DataDir: "/a/../b"}, {KubeletRootDir: "x"}} {
		_, err := Collect(t.Context(), funcConn{run: func(transport.Command) error { t.Error("it was run"); return nil }}, o)
		if err == nil || !strings.Contains(err.Error(), "absolute path") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	lost := &transport.ExitError{Host: "h", Status: 1}
	_, err := Collect(t.Context(), funcConn{run: func(transport.Command) error { return lost }}, CollectOptions{})
	if e, ok := errors.AsType[*transport.ExitError](err); !ok || e != lost {
		t.Errorf("%v", err)
	}
	_, err = Collect(t.Context(), funcConn{run: func(cmd transport.Command) error {
		for {
			if _, err := cmd.Stdout.Write(make([]byte, 1<<20)); err != nil {
				return err
			}
		}
	}}, CollectOptions{})
	if err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a host that never ends: %v", err)
	}
}

// TestCollectHangs: a k0s that hangs costs its own time-out, and is unknown or does
// not answer.
func TestCollectHangs(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	k0s := root + "/usr/local/bin/k0s"
	if err := os.MkdirAll(root+"/usr/local/bin", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(k0s, []byte("#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 100; done\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := Collect(t.Context(), localConn{shell: "/bin/sh", root: root}, CollectOptions{Timeout: time.Second})
	if f.K0s.Path != "/usr/local/bin/k0s" || f.K0s.Binary != Unknown || f.K0s.Answers != No || err != nil {
		t.Errorf("%+v, %v", f.K0s, err)
	}
}
