package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// respawnDelay is how long k0s waits before it starts a component again that ended by itself.
const respawnDelay = 5 * time.Second

// process is a component that runs as a process of its own and is started again when it ends.
type process struct {
	name   string   // as k0s calls it: etcd, kube-apiserver, ...
	path   string   // what is executed
	args   []string // after the program's name
	env    []string
	user   string // root if there is no such user
	runDir string
	stop   time.Duration // how long it may take to end; then it is killed
	log    *slog.Logger
}

// run keeps the process running until the context ends, then ends it and returns.
//
// The kernel kills the child when the thread that started it ends, which is how none is left
// behind when this process is killed. So the thread must live exactly as long as the child.
func (p process) run(ctx context.Context) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	log := p.log.With("component", p.name)
	for {
		err := p.once(ctx, log)
		if ctx.Err() != nil {
			return
		}
		log.Error("Process terminated unexpectedly: " + outcome(err))
		log.Info(fmt.Sprintf("respawning in %s", respawnDelay))
		select {
		case <-ctx.Done():
			return
		case <-time.After(respawnDelay):
		}
	}
}

func (p process) once(ctx context.Context, log *slog.Logger) error {
	cmd := exec.CommandContext(ctx, p.path, p.args...)
	cmd.Args[0] = p.name
	cmd.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/"}, p.env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = p.stop
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if n, ok := uid(p.user); ok && os.Geteuid() == 0 && n != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(n), Gid: 0}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return err
	}
	pid := filepath.Join(p.runDir, p.name+".pid")
	if err := os.WriteFile(pid, []byte(strconv.Itoa(cmd.Process.Pid)+"\n"), 0o644); err != nil {
		log.Warn("Failed to write the pid file: " + err.Error())
	}
	pump(out, log)
	err = cmd.Wait()
	return errors.Join(err, os.Remove(pid))
}

// pump turns the lines of a child into lines of the log. Lines longer than the buffer are cut.
func pump(r io.Reader, log *slog.Logger) {
	in := bufio.NewReaderSize(r, 16<<10)
	for {
		line, more, err := in.ReadLine()
		if err != nil {
			return
		}
		log.Info(string(line), "stream", "stderr")
		for more && err == nil {
			_, more, err = in.ReadLine()
		}
	}
}

func outcome(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// ToolPath is where a program of the sandbox's tools is.
func ToolPath(name string) string {
	dir := os.Getenv(EnvTools)
	if dir == "" {
		dir = DefaultToolsDir
	}
	return filepath.Join(dir, name)
}
