package initd

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/reap"
)

// Active is the state of a service, in systemd's words.
type active string

const (
	inactive     active = "inactive"
	activating   active = "activating"
	running      active = "active"
	deactivating active = "deactivating"
	failed       active = "failed"
)

// A service is a unit and what became of it. The manager's lock guards it.
type service struct {
	unit
	active   active
	sub      string
	result   string // systemd's Result=: success, exit-code, signal, timeout, start-limit-hit
	exit     syscall.WaitStatus
	exited   bool
	proc     *reap.Process
	stopping bool
	gone     bool          // its file was not there when the files were read again
	settled  chan struct{} // closed when a stop is done
	retry    *time.Timer
	restarts int
	starts   []time.Time
	since    time.Time
}

func newService(u unit) *service {
	return &service{unit: u, active: inactive, sub: "dead", result: "success"}
}

func (s *service) enter(a active, sub string) { s.active, s.sub, s.since = a, sub, time.Now() }

// exitExec is the status systemd gives a service whose program cannot be executed.
const exitExec = 203

var errStartLimit = errors.New("start request repeated too quickly")

// launch starts the service's process. The manager's lock is held.
func (m *Manager) launch(s *service) error {
	now := time.Now()
	if s.limitBurst > 0 && s.limitEvery > 0 {
		kept := s.starts[:0]
		for _, t := range s.starts {
			if now.Sub(t) < s.limitEvery {
				kept = append(kept, t)
			}
		}
		s.starts = kept
		if len(s.starts) >= s.limitBurst {
			s.result = "start-limit-hit"
			s.enter(failed, "failed")
			return errStartLimit
		}
	}
	s.starts = append(s.starts, now)
	s.exited, s.result = false, "success"
	proc, err := m.spawn(s)
	if err != nil {
		// systemd forks first: it is the child that finds the program missing, so `start` succeeds.
		m.logf(s, "%v", err)
		m.ended(s, syscall.WaitStatus(exitExec<<8))
		return nil
	}
	s.proc = proc
	if s.kind == "oneshot" {
		s.enter(activating, "start")
	} else {
		s.enter(running, "running")
	}
	go func() {
		status := proc.Status()
		m.mu.Lock()
		defer m.mu.Unlock()
		if s.proc == proc {
			s.proc = nil
			if s.killMode != "process" && s.killMode != "none" {
				// What is left of its group goes too.
				_ = syscall.Kill(-proc.Pid, syscall.SIGKILL)
			}
			m.ended(s, status)
		}
	}()
	return nil
}

func (m *Manager) spawn(s *service) (*reap.Process, error) {
	env := append([]string{}, m.env...)
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	env = append(env, "INVOCATION_ID="+hex.EncodeToString(id))
	env = append(env, s.environment...)
	for _, name := range s.envFiles {
		more, err := readEnvFile(name)
		if err != nil {
			return nil, fmt.Errorf("environment file: %w", err)
		}
		env = append(env, more...)
	}
	vars := map[string]string{}
	for _, kv := range env {
		k, v, _ := strings.Cut(kv, "=")
		vars[k] = v
	}
	host, _ := os.Hostname()
	var args []string
	for i, w := range s.start[len(s.start)-1] {
		if i == 0 {
			w = strings.TrimLeft(w, "-@:+!")
		}
		args = append(args, expand(w, s.name, host, vars)...)
	}
	if len(args) == 0 {
		return nil, errors.New("empty command line")
	}
	log, err := os.OpenFile(m.logFile(s.name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := &exec.Cmd{
		Path: args[0], Args: args, Env: env, Dir: s.dir, Stdout: log, Stderr: log,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	if !filepath.IsAbs(args[0]) {
		return nil, fmt.Errorf("%s: not an absolute path", args[0])
	}
	return m.reaper.Start(cmd)
}

// ended moves a service on whose process is gone. The manager's lock is held.
func (m *Manager) ended(s *service, status syscall.WaitStatus) {
	s.exit, s.exited = status, true
	clean := cleanExit(status)
	if !clean && s.result == "success" { // not when it was killed because its time was up
		s.result = "exit-code"
		if status.Signaled() {
			s.result = "signal"
		}
	}
	if s.stopping {
		m.rest(s)
		return
	}
	if s.kind == "oneshot" && clean && s.remain {
		s.enter(running, "exited")
		return
	}
	if !wantsRestart(s.restart, clean, status) {
		m.rest(s)
		return
	}
	s.enter(activating, "auto-restart")
	s.retry = time.AfterFunc(s.restartWait, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if s.sub == "auto-restart" && !m.closing {
			s.retry = nil
			s.restarts++
			_ = m.launch(s) // its failure is the service's state
		}
	})
}

// rest leaves the service where it stays until somebody asks again.
func (m *Manager) rest(s *service) {
	if s.result == "success" {
		s.enter(inactive, "dead")
	} else {
		s.enter(failed, "failed")
	}
	if s.stopping {
		s.stopping = false
		close(s.settled)
	}
	m.forget(s)
}

// cleanExit is what systemd counts as success: status 0, or one of the four signals by which a
// service is asked to go.
func cleanExit(status syscall.WaitStatus) bool {
	if status.Exited() {
		return status.ExitStatus() == 0
	}
	switch status.Signal() {
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE:
		return true
	}
	return false
}

func wantsRestart(policy string, clean bool, status syscall.WaitStatus) bool {
	switch policy {
	case "always":
		return true
	case "on-success":
		return clean
	case "on-failure":
		return !clean
	case "on-abnormal", "on-abort":
		return !clean && status.Signaled()
	}
	return false
}

// halt asks the service to go and returns what is closed once it has. The manager's lock is held.
func (m *Manager) halt(s *service) <-chan struct{} {
	if s.stopping {
		return s.settled
	}
	s.settled = make(chan struct{})
	s.stopping = true
	if s.retry != nil {
		s.retry.Stop()
		s.retry = nil
	}
	proc := s.proc
	if proc == nil {
		if s.active != failed {
			s.result = "success"
		}
		m.rest(s)
		return s.settled
	}
	s.enter(deactivating, "stop-sigterm")
	send := proc.SignalGroup
	if s.killMode == "process" || s.killMode == "mixed" {
		send = proc.Signal
	}
	if err := send(syscall.SIGTERM); err != nil {
		m.logf(s, "%v", err)
	}
	if s.stopTimeout > 0 {
		go m.giveUp(s, proc, s.stopTimeout)
	}
	return s.settled
}

// giveUp ends a process that did not go within that time after it was asked.
func (m *Manager) giveUp(s *service, proc *reap.Process, after time.Duration) {
	t := time.NewTimer(after)
	defer t.Stop()
	select {
	case <-proc.Done():
		return
	case <-t.C:
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.proc != proc {
		return
	}
	s.result = "timeout"
	s.sub = "stop-sigkill"
	_ = proc.SignalGroup(syscall.SIGKILL)
}
