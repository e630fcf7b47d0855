package initd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A view is a service as it was at one moment, without the manager's lock.
type view struct {
	unit
	loaded    bool
	active    active
	sub       string
	result    string
	pid       int
	restarts  int
	exit      syscall.WaitStatus
	exited    bool
	since     time.Time
	fileState string // enabled, disabled, static; empty where there is no file
}

func (m *Manager) look(name string) view {
	name = fullName(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.find(name)
	if err != nil {
		return view{unit: unit{name: name}, active: inactive, sub: "dead", result: "success"}
	}
	v := view{
		unit: s.unit, loaded: !s.gone, active: s.active, sub: s.sub, result: s.result,
		restarts: s.restarts, exit: s.exit, exited: s.exited, since: s.since,
	}
	if s.proc != nil {
		v.pid = s.proc.Pid
	}
	v.fileState = m.fileState(s.unit)
	return v
}

func (m *Manager) fileState(u unit) string {
	if u.fragment == "" {
		return "enabled"
	}
	if _, err := os.Stat(u.fragment); err != nil {
		return ""
	}
	if _, err := os.Lstat(filepath.Join(m.wants(), u.name)); err == nil {
		return "enabled"
	}
	if len(u.wantedBy) == 0 {
		return "static"
	}
	return "disabled"
}

// properties are those of `systemctl show`, in its order.
func (v view) properties() [][2]string {
	load := "loaded"
	if !v.loaded {
		load = "not-found"
	}
	code, status := 0, 0
	if v.exited {
		// CLD_EXITED and CLD_KILLED, as waitid has them.
		code, status = 1, v.exit.ExitStatus()
		if v.exit.Signaled() {
			code, status = 2, int(v.exit.Signal())
		}
	}
	return [][2]string{
		{"Type", v.kind},
		{"Restart", v.restart},
		{"RestartUSec", span(v.restartWait)},
		{"TimeoutStopUSec", span(v.stopTimeout)},
		{"MainPID", strconv.Itoa(v.pid)},
		{"Result", v.result},
		{"NRestarts", strconv.Itoa(v.restarts)},
		{"ExecMainCode", strconv.Itoa(code)},
		{"ExecMainStatus", strconv.Itoa(status)},
		{"ExecStart", v.execStart()},
		{"KillMode", v.killMode},
		{"Id", v.name},
		{"Names", v.name},
		{"Description", v.described()},
		{"LoadState", load},
		{"ActiveState", string(v.active)},
		{"SubState", v.sub},
		{"FragmentPath", v.fragment},
		{"UnitFileState", v.fileState},
		{"StateChangeTimestamp", stamp(v.since)},
	}
}

func (v view) described() string {
	if v.description != "" {
		return v.description
	}
	return v.name
}

func (v view) execStart() string {
	if len(v.start) == 0 {
		return ""
	}
	args := v.start[len(v.start)-1]
	return fmt.Sprintf("{ path=%s ; argv[]=%s ; ignore_errors=no }", args[0], strings.Join(args, " "))
}

func span(d time.Duration) string {
	if d == 0 {
		return "infinity"
	}
	return d.String()
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("Mon 2006-01-02 15:04:05 MST")
}

func (m *Manager) show(_ context.Context, name string, f flags) Answer {
	v := m.look(name)
	props := v.properties()
	var out strings.Builder
	for _, p := range props {
		if len(f.props) > 0 && !slices.Contains(f.props, p[0]) {
			continue
		}
		if f.value {
			fmt.Fprintln(&out, p[1])
		} else {
			fmt.Fprintf(&out, "%s=%s\n", p[0], p[1])
		}
	}
	return Answer{Stdout: out.String()}
}

func (m *Manager) status(_ context.Context, name string, _ flags) Answer {
	v := m.look(name)
	if !v.loaded && v.active == inactive {
		return Answer{Stderr: fmt.Sprintf("Unit %s could not be found.\n", name), Code: codeNoUnit}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "● %s - %s\n", v.name, v.described())
	fmt.Fprintf(&out, "     Loaded: loaded (%s; %s; preset: enabled)\n", v.fragment, v.fileState)
	fmt.Fprintf(&out, "     Active: %s (%s)", v.active, v.sub)
	if v.result != "success" {
		fmt.Fprintf(&out, " (Result: %s)", v.result)
	}
	if !v.since.IsZero() {
		fmt.Fprintf(&out, " since %s", stamp(v.since))
	}
	fmt.Fprintln(&out)
	if v.pid != 0 {
		fmt.Fprintf(&out, "   Main PID: %d (%s)\n", v.pid, filepath.Base(v.start[len(v.start)-1][0]))
	}
	tail, _ := m.Log(name, 10)
	if tail != "" {
		fmt.Fprintf(&out, "\n%s", tail)
	}
	a := Answer{Stdout: out.String()}
	if v.active != running {
		a.Code = codeNotRunning
	}
	return a
}

func (m *Manager) list(f flags) string {
	var out strings.Builder
	fmt.Fprintln(&out, "UNIT LOAD ACTIVE SUB DESCRIPTION")
	for _, n := range m.names() {
		v := m.look(n)
		if f.failed && v.active != failed || !f.all && !f.failed && v.active == inactive {
			continue
		}
		fmt.Fprintf(&out, "%s loaded %s %s %s\n", v.name, v.active, v.sub, v.described())
	}
	return out.String()
}

func (m *Manager) listFiles() string {
	var out strings.Builder
	fmt.Fprintln(&out, "UNIT FILE STATE PRESET")
	entries, _ := os.ReadDir(m.dir) // none is an empty list
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".service") {
			fmt.Fprintf(&out, "%s %s enabled\n", e.Name(), m.look(e.Name()).fileState)
		}
	}
	return out.String()
}

// Log returns the last lines of what a service wrote; lines below 1 means all.
func (m *Manager) Log(name string, lines int) (string, error) {
	data, err := os.ReadFile(m.logFile(fullName(name)))
	if err != nil {
		return "", err
	}
	all := strings.SplitAfter(string(data), "\n")
	if n := len(all); lines > 0 && n > lines+1 {
		all = all[n-lines-1:]
	}
	return strings.Join(all, ""), nil
}

// Kill sends a signal, SIGTERM where none is named, to the processes of a service.
func (m *Manager) Kill(name, sig string) error {
	n, err := signalNumber(sig)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.find(name)
	if err != nil {
		return err
	}
	if s.proc == nil {
		return nil
	}
	return s.proc.SignalGroup(n)
}

func signalNumber(s string) (syscall.Signal, error) {
	names := map[string]syscall.Signal{
		"": syscall.SIGTERM, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL, "INT": syscall.SIGINT,
		"HUP": syscall.SIGHUP, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
	}
	if sig, ok := names[strings.TrimPrefix(strings.ToUpper(s), "SIG")]; ok {
		return sig, nil
	}
	if n, err := strconv.Atoi(s); err == nil && n > 0 && n < 65 {
		return syscall.Signal(n), nil
	}
	return 0, fmt.Errorf("signal %q: want a name such as KILL or a number", s)
}
