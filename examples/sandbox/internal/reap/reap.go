// Package reap starts processes below a PID 1 and collects every one that ends, its own and
// the orphans that the kernel hands to it.
//
// A PID 1 has to wait for any child, which takes the exit status away from os/exec. So here
// one place waits, and tells whoever started the process.
package reap

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
)

// Reaper is the one place of a process that waits for children. Make it with New.
type Reaper struct {
	mu    sync.Mutex
	procs map[int]*Process
}

// Process is a child that was started by a Reaper.
type Process struct {
	Pid    int
	done   chan struct{}
	status syscall.WaitStatus
}

// New returns a Reaper that collects children for as long as the process lives. A process has
// at most one, and starts its children through nothing else.
func New() *Reaper {
	r := &Reaper{procs: map[int]*Process{}}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		for range ended {
			r.collect()
		}
	}()
	return r
}

// Start starts cmd. Its standard files must be *os.File or nil: nothing here copies for it.
// cmd.Wait must not be called.
func (r *Reaper) Start(cmd *exec.Cmd) (*Process, error) {
	for _, stream := range []any{cmd.Stdin, cmd.Stdout, cmd.Stderr} {
		if _, ok := stream.(*os.File); stream != nil && !ok {
			return nil, fmt.Errorf("start %s: a standard file is a %T, want *os.File", cmd.Path, stream)
		}
	}
	// Under the lock, so that a child that ends at once is known by the time it is collected.
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{Pid: cmd.Process.Pid, done: make(chan struct{})}
	r.procs[p.Pid] = p
	if err := cmd.Process.Release(); err != nil {
		return p, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

func (r *Reaper) collect() {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		r.mu.Lock()
		p := r.procs[pid]
		delete(r.procs, pid)
		r.mu.Unlock()
		if p != nil {
			p.status = ws
			close(p.done)
		}
	}
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Status is how the process ended. It waits for that.
func (p *Process) Status() syscall.WaitStatus {
	<-p.done
	return p.status
}

// Signal sends sig to the process alone. One that has ended is no error.
func (p *Process) Signal(sig syscall.Signal) error { return p.kill(p.Pid, sig) }

// SignalGroup sends sig to the process group that the process leads.
func (p *Process) SignalGroup(sig syscall.Signal) error { return p.kill(-p.Pid, sig) }

func (p *Process) kill(pid int, sig syscall.Signal) error {
	select {
	case <-p.done:
		return nil // the number may be another's by now
	default:
	}
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %v to %d: %w", sig, pid, err)
	}
	return nil
}
