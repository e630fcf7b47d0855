package tools

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

const module = "github.com/mkesdk/mkesdk/examples/sandbox"

// kubernetes is the version that the nested module pins; unstamped, the programs would say that
// they are v0.0.0.
const kubernetes = "v1.37.2"

// kube are the Kubernetes programs, in the order in which they are built: what takes longest, and
// what the others share most with, first.
func kube() []string { return []string{"kube-apiserver", "kube-controller-manager", "kubectl"} }

// kubeFlags are how they are built. Any other set would compile everything again.
func kubeFlags() []string {
	const p = "k8s.io/component-base/version."
	minor := strings.Split(kubernetes, ".")[1]
	ld := []string{
		"-s", "-w", "-X", p + "gitVersion=" + kubernetes, "-X", p + "gitMajor=1", "-X", p + "gitMinor=" + minor,
		"-X", p + "gitTreeState=clean", "-X", p + "gitCommit=unknown",
	}
	return []string{"-trimpath", "-buildvcs=false", "-ldflags=" + strings.Join(ld, " ")}
}

// ErrNoGo says that there is no Go tool to build with.
var ErrNoGo = errors.New("the go command is needed to build the sandbox's programs: install Go 1.26 or newer and put it on PATH")

// Programs builds what is missing and returns where each of the sandbox's programs is: "sandbox",
// "kube-apiserver", "kube-controller-manager" and "kubectl".
func (b Builder) Programs(ctx context.Context) (map[string]string, error) {
	self, err := b.Sandbox(ctx)
	if err != nil {
		return nil, err
	}
	programs, err := b.Kubernetes(ctx)
	if err != nil {
		return nil, err
	}
	programs["sandbox"] = self
	return programs, nil
}

// Kubernetes builds the Kubernetes programs where they are missing and returns where they are.
func (b Builder) Kubernetes(ctx context.Context) (map[string]string, error) {
	src, err := sourceDir(ctx)
	if err != nil {
		return nil, err
	}
	src = filepath.Join(src, "tools")
	flags := kubeFlags()
	key, err := keyOf([]string{filepath.Join(src, "go.mod"), filepath.Join(src, "go.sum")},
		append(flags, "CGO_ENABLED=0", runtime.GOOS, runtime.GOARCH)...)
	if err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	programs := map[string]string{}
	err = b.locked(ctx, key, func(dir string) error {
		for i, name := range kube() {
			programs[name] = filepath.Join(dir, name)
			if _, err := os.Stat(programs[name]); err == nil {
				continue
			}
			note := ""
			if i == 0 {
				note = " (this once; the three take 4 to 10 minutes on two cores)"
			}
			b.say("building %s %s%s", name, kubernetes, note)
			if err := b.buildWhole(ctx, src, name, programs[name], flags); err != nil {
				return fmt.Errorf("build %s: %w", name, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return programs, nil
}

// buildWhole builds a program under another name and renames it: what is under its own name is
// whole.
func (b Builder) buildWhole(ctx context.Context, src, name, target string, flags []string) error {
	part := target + ".part"
	defer os.Remove(part)
	args := append(flags, "-o", part, "k8s.io/kubernetes/cmd/"+name)
	// GOFLAGS of the user's would be another set of flags.
	if err := b.goBuild(ctx, src, name, args, "CGO_ENABLED=0", "GOFLAGS="); err != nil {
		return err
	}
	return os.Rename(part, target)
}

// Sandbox builds the sandbox's own binary from the sources as they are now, unless this process
// runs it, and returns where it is.
func (b Builder) Sandbox(ctx context.Context) (string, error) {
	if b.Self != "" {
		// `go run` deletes its binary when it ends, while the sandbox may go on.
		var path string
		err := b.locked(ctx, "sandbox", func(dir string) (err error) {
			path, err = keep(b.Self, dir, "sandbox")
			return err
		})
		return path, err
	}
	src, err := sourceDir(ctx)
	if err != nil {
		return "", err
	}
	return b.current(ctx, src, "sandbox")
}

// Mkectl builds examples/mkectl from the sources as they are now and returns where it is.
func (b Builder) Mkectl(ctx context.Context) (string, error) {
	src, err := sourceDir(ctx)
	if err != nil {
		return "", err
	}
	return b.current(ctx, filepath.Join(src, "..", "mkectl"), "mkectl")
}

// current builds the program in src. The go command sees by itself that a build is up to date, so
// its output is left where it was. It is built as `go run` and `go test` build, whose compiled
// packages it shares.
func (b Builder) current(ctx context.Context, src, name string) (string, error) {
	var path string
	err := b.locked(ctx, name, func(dir string) error {
		built := filepath.Join(dir, "build")
		if err := b.goBuild(ctx, src, name, []string{"-buildvcs=false", "-o", built, "."}); err != nil {
			return fmt.Errorf("build %s: %w", name, err)
		}
		var err error
		path, err = keep(built, dir, name)
		return err
	})
	return path, err
}

// sourceDir is the directory of the sandbox's module. It is asked of the go command, which knows
// it wherever within the module, or within one that requires it, this runs.
func sourceDir(ctx context.Context) (string, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return "", ErrNoGo
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		return "", fmt.Errorf("the sources of %s are not found from here; run this within examples/sandbox of the clone (go -C examples/sandbox run . …): %s",
			module, strings.TrimSpace(stderr.String()))
	}
	return dir, nil
}

// goBuild runs go build for the program name, saying now and then how far it is.
func (b Builder) goBuild(ctx context.Context, src, name string, args []string, env ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-v"}, args...)...)
	cmd.Dir = src
	// A workspace would bring another set of modules.
	cmd.Env = append(append(os.Environ(), "GOWORK=off", "PWD="+src), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	pipe, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	tail := b.follow(pipe, name)
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%w:\n%s", err, tail)
	}
	return nil
}

// follow reads what go build says: a line for each package that it compiles, and what is wrong. It
// returns the last lines, those that tell of an error.
func (b Builder) follow(r io.Reader, name string) string {
	const every = 15 * time.Second
	began, next := time.Now(), time.Now().Add(every)
	var tail []string
	n := 0
	for s := bufio.NewScanner(r); s.Scan(); {
		line := s.Text()
		if !strings.ContainsAny(line, " \t:") {
			n++ // an import path
		} else if tail = append(tail, line); len(tail) > 40 {
			tail = tail[1:]
		}
		if now := time.Now(); now.After(next) {
			b.say("  %s: %d packages compiled, %v", name, n, now.Sub(began).Round(time.Second))
			next = now.Add(every)
		}
	}
	return strings.Join(tail, "\n")
}
