package hoststest_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/hosts/hoststest"
	"github.com/mkesdk/mkesdk/transport"
)

// conn runs a command by a func and remembers what it printed.
type conn struct {
	run func(ctx context.Context, cmd transport.Command) error
}

func (c conn) Run(ctx context.Context, cmd transport.Command) error { return c.run(ctx, cmd) }
func (conn) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.ErrUnsupported
}
func (conn) Close() error   { return nil }
func (conn) String() string { return "root@h1:22" }

// TestHonest runs the real script on the files of each machine and compares what it
// prints with what the machine says it would.
func TestHonest(t *testing.T) {
	for name, m := range machines(t) {
		m.Clock = func() time.Time { return time.Unix(1796071705, 1) }
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, shell := range shells(t) {
				honest(t, m, shell)
			}
		})
	}
}

// shells are those of this machine that a host may have as /bin/sh.
func shells(t *testing.T) (found []string) {
	t.Helper()
	for _, name := range []string{"dash", "bash"} {
		if path, err := exec.LookPath(name); err == nil {
			found = append(found, path)
		}
	}
	if len(found) == 0 {
		t.Fatal("neither dash nor bash on this machine")
	}
	return found
}

func honest(t *testing.T, m hoststest.Machine, shell string) {
	t.Helper()
	if _, err := exec.LookPath("apparmor_parser"); err == nil {
		m.AppArmorParser = true // the script finds that of this machine
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	install(t, m, root, bin)
	var real, said bytes.Buffer
	o := hosts.CollectOptions{DataDir: m.DataDir, KubeletRootDir: m.KubeletRootDir}
	want, err := hosts.Collect(t.Context(), conn{func(ctx context.Context, cmd transport.Command) error {
		if cmd.Effect != transport.EffectNone || !cmd.Sudo {
			t.Errorf("the command is %v, sudo %v", cmd.Effect, cmd.Sudo)
		}
		x := exec.CommandContext(ctx, shell, append(cmd.Args[1:len(cmd.Args):len(cmd.Args)], root)...)
		x.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
		var stderr bytes.Buffer
		x.Stdout, x.Stderr = &real, &stderr
		if err := x.Run(); err != nil {
			return err
		}
		if stderr.Len() > 0 {
			t.Errorf("the script complains: %s", stderr.String())
		}
		if _, err := cmd.Stdout.Write(real.Bytes()); err != nil {
			return err
		}
		// The machine is asked the very same question.
		cmd.Stdout = &said
		if ok, err := m.Answer(cmd); !ok || err != nil {
			t.Errorf("Answer: %v, %v", ok, err)
		}
		return nil
	}}, o)
	if err != nil {
		t.Fatalf("%v\n%s", err, real.String())
	}
	if real.String() != said.String() {
		t.Errorf("%s: the script and the machine differ:\n%s", filepath.Base(shell), difference(real.String(), said.String()))
	}
	if strings.Contains(real.String(), secret) || strings.Contains(real.String(), "H4sI") {
		t.Error("a secret left the host")
	}
	got, err := hosts.Collect(t.Context(), conn{func(_ context.Context, cmd transport.Command) error {
		_, err := m.Answer(cmd)
		return err
	}}, o)
	if err != nil {
		t.Fatal(err)
	}
	want.Clock, got.Clock = hosts.Clock{}, hosts.Clock{}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the facts differ:\n got %+v\nwant %+v", got, want)
	}
}

// difference returns the first lines that differ.
func difference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return "script:  " + strings.Join(x[max(0, i-2):min(len(x), i+3)], "\n         ") +
				"\nmachine: " + strings.Join(y[max(0, i-2):min(len(y), i+3)], "\n         ")
		}
	}
	return "one is longer"
}
