package initd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/reap"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/wire"
)

// Socket is where a host's init listens, below the host's root.
const Socket = "/run/systemd/private"

// Request is what init is asked; one of its fields says what.
type Request struct {
	Systemctl []string `json:",omitempty"`
	Exec      *Exec    `json:",omitempty"`
	Shutdown  bool     `json:",omitempty"` // stop the services; replied to when they are gone
}

// Exec is a command to run on the host. Its three standard files come with the request, or,
// with a terminal, none: the terminal's other end comes back with the first reply.
type Exec struct {
	Args       []string
	Env        []string // added to the host's own
	Dir        string
	TTY        bool
	Rows, Cols uint16
}

// Reply is init's answer. An Exec has two: that it started, and how it ended.
type Reply struct {
	Answer  *Answer       `json:",omitempty"`
	Started int           `json:",omitempty"` // process number on the host
	Ended   bool          `json:",omitempty"`
	Code    int           `json:",omitempty"` // exit status, 128 + signal where a signal ended it
	Failure *wire.Failure `json:",omitempty"`
}

// Serve answers requests on l until ctx ends. env is what commands run with, reboot what is
// called for `systemctl reboot` and `poweroff`.
func (m *Manager) Serve(ctx context.Context, l *net.UnixListener, env []string, power func(reboot bool)) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		c, err := l.AcceptUnix()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("init: accept: %w", err)
		}
		go func() {
			defer c.Close()
			m.answer(ctx, c, env, power)
		}()
	}
}

func (m *Manager) answer(ctx context.Context, c *net.UnixConn, env []string, power func(bool)) {
	var req Request
	files, err := wire.Receive(c, &req)
	if err != nil {
		return
	}
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	switch {
	case req.Exec != nil:
		err = m.exec(c, *req.Exec, files, env)
	case req.Shutdown:
		m.Close(ctx)
		err = wire.Send(c, Reply{Ended: true})
	case len(req.Systemctl) > 0 && isPower(req.Systemctl[0]):
		// The caller is on the host too and goes with it.
		err = wire.Send(c, Reply{Answer: &Answer{}})
		power(req.Systemctl[0] == "reboot")
	default:
		a := m.Systemctl(ctx, req.Systemctl)
		err = wire.Send(c, Reply{Answer: &a})
	}
	if err != nil {
		_ = wire.Send(c, Reply{Failure: wire.Fail(err)}) // a caller that is gone needs no answer
	}
}

func isPower(verb string) bool { return verb == "reboot" || verb == "poweroff" || verb == "halt" }

func (m *Manager) exec(c *net.UnixConn, e Exec, files []*os.File, env []string) error {
	if len(e.Args) == 0 {
		return errors.New("exec: no command")
	}
	path, err := lookPath(e.Args[0], env)
	if err != nil {
		return err
	}
	cmd := &exec.Cmd{Path: path, Args: e.Args, Env: append(append([]string{}, env...), e.Env...), Dir: e.Dir}
	if cmd.Dir == "" {
		cmd.Dir = "/root"
	}
	var master *os.File
	switch {
	case e.TTY:
		pty, tty, err := openPTY(e.Rows, e.Cols)
		if err != nil {
			return err
		}
		defer pty.Close()
		defer tty.Close()
		master = pty
		cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	case len(files) == 3:
		cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[1], files[2]
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	default:
		return fmt.Errorf("exec: %d standard files, want 3", len(files))
	}
	p, err := m.reaper.Start(cmd)
	if err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	var beside []*os.File
	if master != nil {
		beside = append(beside, master)
	}
	if err := wire.Send(c, Reply{Started: p.Pid}, beside...); err != nil {
		_ = p.SignalGroup(syscall.SIGKILL)
		return err
	}
	go killWhenGone(c, p)
	status := p.Status()
	return wire.Send(c, Reply{Ended: true, Code: exitCode(status)})
}

// killWhenGone ends a command whose caller has hung up.
func killWhenGone(c *net.UnixConn, p *reap.Process) {
	_, _ = io.Copy(io.Discard, c)
	_ = p.SignalGroup(syscall.SIGKILL)
}

func exitCode(ws syscall.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, kv := range env {
		dirs, ok := strings.CutPrefix(kv, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(dirs) {
			path := filepath.Join(dir, name)
			if st, err := os.Stat(path); err == nil && !st.IsDir() && st.Mode()&0o111 != 0 {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("exec: %s: not found on the host", name)
}
