package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/tools"
)

// mkectlAgent begins the user agent of mkectl.
const mkectlAgent = "mkectl/"

// buildMkectl builds mkectl from the sources as they are.
func buildMkectl(t *testing.T) string {
	t.Helper()
	path, err := tools.Builder{Say: func(line string) { t.Log(line) }}.Mkectl(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A ran is a command line that has ended.
type ran struct {
	out, err string
	code     int
	took     time.Duration
}

// A command line is mkectl as a person starts it.
type commandLine struct {
	b    *bed
	args []string
	home string
	env  []string
	in   string
}

func (b *bed) line(args ...string) commandLine {
	return commandLine{b: b, args: args, home: b.t.TempDir()}
}

// run runs mkectl where the sandbox's hosts can be reached.
func (l commandLine) run() ran {
	l.b.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := l.cmd()
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	if err := l.start(cmd); err != nil {
		l.b.t.Fatal(err)
	}
	err := cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || !exit.Exited()) {
		l.b.t.Fatalf("mkectl %v: %v\n%s%s", l.args, err, &stdout, &stderr)
	}
	return ran{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode(), time.Since(began)}
}

func (l commandLine) cmd() *exec.Cmd {
	cmd := exec.CommandContext(l.b.t.Context(), l.b.mkectl, l.args...)
	cmd.Dir = l.b.Dir()
	cmd.Env = append([]string{
		"HOME=" + l.home, "KUBECONFIG=" + l.b.Kubeconfig(), "PATH=" + filepath.Dir(l.b.mkectl) + ":/usr/bin:/bin", "TMPDIR=" + os.TempDir(),
	}, l.env...)
	return cmd
}

// start starts cmd in the network of the sandbox's operator side.
func (l commandLine) start(cmd *exec.Cmd) error {
	ns, err := l.b.Client().Netns(l.b.t.Context())
	if err != nil {
		return err
	}
	defer ns.Close()
	started := make(chan error)
	go func() {
		// The thread joins the network, forks, and is never used again.
		runtime.LockOSThread()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			started <- err
			return
		}
		started <- cmd.Start()
	}()
	return <-started
}
