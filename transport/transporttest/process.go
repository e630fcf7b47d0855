package transporttest

import (
	"context"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// signals are those that SSH has names for.
func signals() map[string]syscall.Signal {
	return map[string]syscall.Signal{
		"ABRT": syscall.SIGABRT, "ALRM": syscall.SIGALRM, "FPE": syscall.SIGFPE, "HUP": syscall.SIGHUP, "ILL": syscall.SIGILL,
		"INT": syscall.SIGINT, "KILL": syscall.SIGKILL, "PIPE": syscall.SIGPIPE, "QUIT": syscall.SIGQUIT, "SEGV": syscall.SIGSEGV,
		"TERM": syscall.SIGTERM, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
	}
}

// process runs a command as a process group of its own. As with OpenSSH, the exit is
// reported when the process ends, and the session stays open for as long as something
// holds its output. Other than OpenSSH, it kills the group when the session is closed
// before the process has ended.
func (s *serverSession) process(ctx context.Context, e *Exec) (status int, signal string) {
	server := s.conn.server
	argv := server.Shell
	if len(argv) == 0 {
		argv = []string{"/bin/sh", "-c"}
	}
	if e.Wire == "" {
		argv = argv[:1]
	}
	fail := func(err error) (int, string) {
		_, _ = io.WriteString(e.Stderr, err.Error()+"\n")
		s.report(127, "")
		return 127, ""
	}
	pipes, err := openPipes()
	if err != nil {
		return fail(err)
	}
	defer pipes.closeAll()
	cmd := exec.Command(argv[0], argv[1:]...) // ended by group, below
	if e.Wire != "" {
		cmd.Args = append(cmd.Args, e.Wire)
	}
	cmd.Env = server.environ(e.User)
	cmd.Dir = server.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = pipes.in.r, pipes.out.w, pipes.err.w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fail(err)
	}
	pipes.closeTheirs()
	group := -cmd.Process.Pid
	var alive sync.Mutex // guards gone: a process that has ended has no number of its own any more
	gone := false
	kill := func(sig syscall.Signal) bool {
		alive.Lock()
		defer alive.Unlock()
		return !gone && syscall.Kill(group, sig) == nil
	}
	s.onSignal(func(name string) bool {
		sig, ok := signals()[name]
		return ok && kill(sig)
	})
	stop := context.AfterFunc(ctx, func() { kill(syscall.SIGKILL) })
	defer stop()
	go func() {
		_, _ = io.Copy(pipes.in.w, e.Stdin)
		_ = pipes.in.w.Close()
	}()
	var outputs sync.WaitGroup
	outputs.Go(func() { _, _ = io.Copy(e.Stdout, pipes.out.r) })
	outputs.Go(func() { _, _ = io.Copy(e.Stderr, pipes.err.r) })
	_ = cmd.Wait() // its state has it all
	alive.Lock()
	gone = true
	alive.Unlock()
	status, signal = ending(cmd)
	unhold := context.AfterFunc(ctx, pipes.closeAll)
	defer unhold()
	s.report(status, signal)
	outputs.Wait()
	return status, signal
}

// ending says how a process that was waited for ended.
func ending(cmd *exec.Cmd) (status int, signal string) {
	if cmd.ProcessState == nil {
		return 255, "" // something else took its status
	}
	ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !ws.Signaled() {
		return cmd.ProcessState.ExitCode(), ""
	}
	for name, sig := range signals() {
		if sig == ws.Signal() {
			return -1, name
		}
	}
	return 128 + int(ws.Signal()), ""
}

// environ is the environment of a user's commands.
func (s *Server) environ(user string) []string {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "USER=" + user, "LOGNAME=" + user, "SHELL=/bin/sh", "HOME=/"}
	if home, err := os.UserHomeDir(); err == nil {
		env = append(env, "HOME="+home)
	}
	return append(env, s.Env...)
}

// pipes are those between a session and its process.
type pipes struct{ in, out, err pipe }

type pipe struct{ r, w *os.File }

func openPipes() (p pipes, err error) {
	for _, at := range []*pipe{&p.in, &p.out, &p.err} {
		if at.r, at.w, err = os.Pipe(); err != nil {
			p.closeAll()
			return p, err
		}
	}
	return p, nil
}

// closeTheirs closes the ends that the process has.
func (p pipes) closeTheirs() {
	for _, f := range []*os.File{p.in.r, p.out.w, p.err.w} {
		_ = f.Close()
	}
}

func (p pipes) closeAll() {
	for _, f := range []*os.File{p.in.r, p.in.w, p.out.r, p.out.w, p.err.r, p.err.w} {
		if f != nil {
			_ = f.Close()
		}
	}
}
