package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFirstCtrlC ends an operation at its next safe point.
func TestFirstCtrlC(t *testing.T) {
	p := begin(t, "stop")
	p.interrupt("stopping at the next safe point")
	if code, text := p.wait(); code != exitFailed || !strings.Contains(text, "stopped as asked") || !strings.Contains(text, "nothing was changed") {
		t.Errorf("exit code %d, and it said:\n%s", code, text)
	}
}

// TestSecondCtrlC ends an operation at once and says what was left.
func TestSecondCtrlC(t *testing.T) {
	p := begin(t, "stubborn")
	p.interrupt("stopping at the next safe point")
	p.interrupt("ending at once")
	code, text := p.wait()
	for _, want := range []string{"interrupted", "left behind", "the operation lock of h1"} {
		if !strings.Contains(text, want) {
			t.Errorf("it did not say %q, but:\n%s", want, text)
		}
	}
	if code != exitFailed || strings.Contains(text, "nothing was changed") {
		t.Errorf("exit code %d, and it said:\n%s", code, text)
	}
}

// A process is mkectl node add over a fake, running.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr *bufio.Reader
	text   strings.Builder
}

// begin starts it and waits until the operation runs.
func begin(t *testing.T, behaviour string) *process {
	t.Helper()
	dir := t.TempDir()
	for name, data := range map[string]string{"hosts.yaml": "hosts:\n  - role: worker\n    ssh: {address: 10.0.0.21}\n", "kubeconfig": "{}"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "node", "add", "--kubeconfig", "kubeconfig")
	cmd.Args[0] = "mkectl-fake"
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "MKECTL_FAKE="+behaviour)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(stdout)
	for line := ""; !strings.Contains(line, "started"); {
		if line, err = out.ReadString('\n'); err != nil {
			t.Fatalf("it ended before it began: %q, %v", line, err)
		}
	}
	go io.Copy(io.Discard, out)
	return &process{t: t, cmd: cmd, stderr: bufio.NewReader(stderr)}
}

// interrupt sends SIGINT and waits until that has been answered.
func (p *process) interrupt(answer string) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		p.t.Fatal(err)
	}
	for {
		line, err := p.stderr.ReadString('\n')
		p.text.WriteString(line)
		if strings.Contains(line, answer) {
			return
		}
		if err != nil {
			p.t.Fatalf("it never said %q, but:\n%s", answer, p.text.String())
		}
	}
}

// wait returns the exit code and all that was said on standard error.
func (p *process) wait() (int, string) {
	p.t.Helper()
	rest, err := io.ReadAll(p.stderr)
	if err != nil {
		p.t.Fatal(err)
	}
	p.text.Write(rest)
	err = p.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), p.text.String()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return exitDone, p.text.String()
}
