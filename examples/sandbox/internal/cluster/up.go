package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/host"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/wire"
)

// Sandbox is a sandbox that this process started. It ends with this process, unless it is
// detached.
type Sandbox struct {
	*Client
	cmd    *exec.Cmd
	parent *net.UnixConn
	ended  chan struct{}
}

// ErrNotRoot says that the caller may not make namespaces.
var ErrNotRoot = errors.New("a sandbox is made of namespaces, which takes root; run this as root (sudo -E)")

// Fit says what keeps this machine, or this user, from having a sandbox. It takes no time, so it can
// be asked before anything is built.
func Fit() error {
	if os.Geteuid() != 0 {
		return ErrNotRoot
	}
	known, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	var errs []error
	for _, fs := range []string{"cgroup2", "tmpfs"} {
		if !strings.Contains(string(known), "\t"+fs+"\n") {
			errs = append(errs, fmt.Errorf("sandbox: this machine's kernel has no %s", fs))
		}
	}
	return errors.Join(errs...)
}

// Up starts a sandbox and returns when it is ready. say is told what happens meanwhile; nil keeps
// it quiet. A sandbox that fails to start, or whose ctx ends before it is ready, leaves nothing
// behind but its log.
func Up(ctx context.Context, cfg Config, say func(line string)) (*Sandbox, error) {
	if err := Fit(); err != nil {
		return nil, err
	}
	if say == nil {
		say = func(string) {}
	}
	if cfg.SSH == "" {
		cfg.SSH = host.OpenSSH
		if host.SSHDPath() == "" {
			cfg.SSH = host.Builtin
		}
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("sandbox: state directory: %w", err)
	}
	if err := os.Chmod(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("sandbox: state directory: %w", err)
	}
	s, err := start(cfg)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	if err := s.await(ctx, say); err != nil {
		s.Close()
		return nil, fmt.Errorf("sandbox: %w (its log is %s)", err, filepath.Join(cfg.Dir, LogFile))
	}
	return s, nil
}

// start starts the supervisor, and tells it what to make.
func start(cfg Config) (*Sandbox, error) {
	log, err := os.OpenFile(filepath.Join(cfg.Dir, LogFile), os.O_CREATE|os.O_TRUNC|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	ours, theirs, err := host.SocketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd := &exec.Cmd{
		Path: cfg.Programs[host.Program],
		Args: []string{Supervisor, cfg.Dir}, // the directory is there for people who look at ps
		Env:  []string{"PATH=" + host.Path, "LANG=C.UTF-8"}, Dir: "/",
		Stdout: log, Stderr: log, ExtraFiles: []*os.File{theirs},
		SysProcAttr: &syscall.SysProcAttr{
			Setsid: true, // a Ctrl-C is for who started it
			Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET |
				syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWCGROUP,
		},
	}
	if err := cmd.Start(); err != nil {
		_ = ours.Close()
		return nil, fmt.Errorf("start the supervisor: %w", err)
	}
	s := &Sandbox{Client: &Client{dir: cfg.Dir}, cmd: cmd, parent: ours, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(s.ended)
	}()
	if err := wire.Send(ours, cfg); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Supervisor is the name under which the sandbox's binary is the supervisor.
const Supervisor = "mkesdk-sandbox-supervisor"

func (s *Sandbox) await(ctx context.Context, say func(string)) error {
	stop := context.AfterFunc(ctx, func() { _ = s.parent.Close() })
	defer stop()
	for {
		var p progress
		_, err := wire.Receive(s.parent, &p)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("the supervisor ended before it was ready: %w", err)
		}
		switch {
		case p.Failure != nil:
			return p.Failure
		case p.Ready:
			return nil
		case p.Line != "":
			say(p.Line)
		}
	}
}

// Pid is the supervisor's process number.
func (s *Sandbox) Pid() int { return s.cmd.Process.Pid }

// Ended is closed when the sandbox has ended, however it did.
func (s *Sandbox) Ended() <-chan struct{} { return s.ended }

// Close ends the sandbox at once, and returns when nothing of it is left.
func (s *Sandbox) Close() {
	_ = s.cmd.Process.Kill() // one that has ended is as wanted
	<-s.ended
	_ = s.parent.Close()
}
