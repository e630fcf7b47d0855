package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
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

// An outcome is how a command line ended.
type outcome struct {
	out, err string
	code     int
}

// home is the home directory of who starts mkectl in this part of the test.
func (b *bed) home() string {
	b.t.Helper()
	if b.homeDir == "" {
		b.homeDir = b.t.TempDir()
		if err := os.Mkdir(filepath.Join(b.homeDir, ".mke"), 0o700); err != nil {
			b.t.Fatal(err)
		}
	}
	return b.homeDir
}

// run runs mkectl where the sandbox's hosts can be reached, to its end.
func (b *bed) run(args ...string) outcome {
	b.t.Helper()
	return b.begin(args...).wait()
}

// A process is a mkectl that runs.
type process struct {
	b        *bed
	cmd      *exec.Cmd
	out, err *watched
	ended    context.CancelFunc
}

// begin starts mkectl as a person does, in a pipe.
func (b *bed) begin(args ...string) *process {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), opTime)
	cmd := exec.CommandContext(ctx, b.mkectl, args...)
	cmd.Dir = b.Dir()
	cmd.Env = []string{"HOME=" + b.home(), "KUBECONFIG=" + b.Kubeconfig(), "PATH=/usr/bin:/bin", "TMPDIR=" + os.TempDir()}
	p := &process{b: b, cmd: cmd, out: newWatched(), err: newWatched(), ended: cancel}
	cmd.Stdout, cmd.Stderr = p.out, p.err
	ns, err := b.Client().Netns(ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	defer ns.Close()
	started := make(chan error)
	go func() {
		// The thread joins the network of the operator's side, forks, and is never used again.
		runtime.LockOSThread()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			started <- err
			return
		}
		started <- cmd.Start()
	}()
	if err := <-started; err != nil {
		b.t.Fatal(err)
	}
	return p
}

// await waits until a line of the text says all of these.
func (p *process) await(text *watched, parts ...string) {
	p.b.t.Helper()
	end := time.After(time.Minute)
	for {
		said, more := text.line(parts)
		if said {
			return
		}
		select {
		case <-more:
		case <-end:
			p.b.t.Fatalf("mkectl has not said %q:\n%s%s", parts, p.out, p.err)
		}
	}
}

// signal sends a signal to the process.
func (p *process) signal(s os.Signal) {
	p.b.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.b.t.Fatalf("signal %v: %v\n%s%s", s, err, p.out, p.err)
	}
}

// wait waits for the end of the process, which is to end by itself.
func (p *process) wait() outcome {
	p.b.t.Helper()
	defer p.ended()
	err := p.cmd.Wait()
	exit, failed := errors.AsType[*exec.ExitError](err)
	if err != nil && (!failed || !exit.Exited()) {
		p.b.t.Fatalf("%v: %v\n%s%s", p.cmd.Args, err, p.out, p.err)
	}
	return outcome{p.out.String(), p.err.String(), p.cmd.ProcessState.ExitCode()}
}

// kill ends the process as it stands.
func (p *process) kill() {
	p.b.t.Helper()
	p.signal(os.Kill)
	_ = p.cmd.Wait() // it says that it was killed
	p.ended()
}

// A watched text is one that grows.
type watched struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // closed, and made anew, when it has grown
}

func newWatched() *watched { return &watched{more: make(chan struct{})} }

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.more)
	w.more = make(chan struct{})
	return w.text.Write(p)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// line says whether a line has all the parts, and gives what is closed when there is more to look at.
func (w *watched) line(parts []string) (bool, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range strings.Lines(w.text.String()) {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(line, part)
		}
		if all {
			return true, w.more
		}
	}
	return false, w.more
}
