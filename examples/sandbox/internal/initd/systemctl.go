package initd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Answer is what a systemctl command prints, and the status it ends with.
type Answer struct {
	Stdout, Stderr string
	Code           int
}

// The exit codes of systemctl that scripts look at.
const (
	codeNotRunning = 3
	codeNoUnit     = 4
	codeNotLoaded  = 5
)

// flags of a systemctl command, those that change what is done.
type flags struct {
	props   []string
	value   bool
	quiet   bool
	now     bool
	all     bool
	failed  bool
	signal  string
	args    []string
	unknown []string
}

// parseFlags reads a systemctl command line; options may stand anywhere.
func parseFlags(args []string) flags {
	var f flags
	for i := 0; i < len(args); i++ {
		a := args[i]
		next := func() string {
			i++
			if i < len(args) {
				return args[i]
			}
			return ""
		}
		name, val, hasVal := strings.Cut(a, "=")
		switch name {
		case "-p", "--property":
			if !hasVal {
				val = next()
			}
			f.props = append(f.props, strings.Split(val, ",")...)
		case "--value":
			f.value = true
		case "-q", "--quiet":
			f.quiet = true
		case "--now":
			f.now = true
		case "-a", "--all":
			f.all = true
		case "--failed":
			f.failed = true
		case "-s", "--signal":
			if !hasVal {
				val = next()
			}
			f.signal = val
		case "-t", "--type", "--state", "-n", "--lines", "-o", "--output":
			if !hasVal {
				next()
			}
		case "--no-block", "--no-pager", "--no-legend", "--plain", "-l", "--full", "--system", "-f", "--force", "--no-ask-password", "--no-reload", "--job-mode":
			// Nothing here blocks, pages or asks.
		default:
			if strings.HasPrefix(a, "-p") && len(a) > 2 {
				f.props = append(f.props, strings.Split(a[2:], ",")...)
			} else if strings.HasPrefix(a, "-") {
				f.unknown = append(f.unknown, a)
			} else {
				f.args = append(f.args, a)
			}
		}
	}
	return f
}

// Systemctl does what a systemctl command line asks.
func (m *Manager) Systemctl(ctx context.Context, args []string) Answer {
	f := parseFlags(args)
	if len(f.unknown) > 0 {
		return Answer{Stderr: fmt.Sprintf("systemctl: unrecognized option '%s'\n", f.unknown[0]), Code: 1}
	}
	verb := "list-units"
	if len(f.args) > 0 {
		verb, f.args = f.args[0], f.args[1:]
	}
	each, ok := m.verbs()[verb]
	if !ok {
		return m.other(verb, f)
	}
	if len(f.args) == 0 {
		return Answer{Stderr: "Too few arguments.\n", Code: 1}
	}
	var out Answer
	for i, name := range f.args {
		a := each(ctx, fullName(name), f)
		if i > 0 && verb == "show" {
			out.Stdout += "\n"
		}
		out.Stdout += a.Stdout
		out.Stderr += a.Stderr
		if a.Code != 0 {
			out.Code = a.Code
		}
	}
	if f.quiet {
		out.Stdout = ""
	}
	return out
}

type verb func(ctx context.Context, name string, f flags) Answer

func (m *Manager) verbs() map[string]verb {
	stop := func(ctx context.Context, name string, _ flags) Answer {
		return failure("stop", name, m.Stop(ctx, name))
	}
	start := func(_ context.Context, name string, _ flags) Answer { return failure("start", name, m.Start(name)) }
	restart := func(ctx context.Context, name string, f flags) Answer {
		if a := stop(ctx, name, f); a.Code != 0 {
			a.Stderr = strings.Replace(a.Stderr, "stop", "restart", 1)
			return a
		}
		return start(ctx, name, f)
	}
	return map[string]verb{
		"start": start, "stop": stop, "restart": restart, "reload-or-restart": restart,
		"try-restart": func(ctx context.Context, name string, f flags) Answer {
			if s := m.look(name); s.active == running || s.active == activating {
				return restart(ctx, name, f)
			}
			return Answer{}
		},
		"kill": func(_ context.Context, name string, f flags) Answer {
			return failure("kill", name, m.Kill(name, f.signal))
		},
		"enable":  m.enable,
		"disable": m.disable,
		"is-active": func(_ context.Context, name string, _ flags) Answer {
			return stateAnswer(m.look(name), func(a active) bool { return a == running }, codeNotRunning)
		},
		"is-failed": func(_ context.Context, name string, _ flags) Answer {
			return stateAnswer(m.look(name), func(a active) bool { return a == failed }, 1)
		},
		"is-enabled": func(_ context.Context, name string, _ flags) Answer {
			s := m.look(name)
			switch s.fileState {
			case "":
				return Answer{Stdout: "not-found\n", Code: codeNoUnit}
			case "disabled":
				return Answer{Stdout: "disabled\n", Code: 1}
			}
			return Answer{Stdout: s.fileState + "\n"}
		},
		"show":   m.show,
		"status": m.status,
		"cat":    m.cat,
	}
}

func (m *Manager) other(verb string, f flags) Answer {
	switch verb {
	case "daemon-reload", "daemon-reexec":
		m.Reload()
		return Answer{}
	case "reset-failed":
		if err := m.ResetFailed(f.args...); err != nil {
			return Answer{Stderr: "Failed to reset failed state of unit: " + err.Error() + "\n", Code: 1}
		}
		return Answer{}
	case "is-system-running":
		return Answer{Stdout: "running\n"}
	case "show":
		return Answer{Stdout: "Version=255\n"}
	case "list-units":
		return Answer{Stdout: m.list(f)}
	case "list-unit-files":
		return Answer{Stdout: m.listFiles()}
	}
	return Answer{Stderr: fmt.Sprintf("Unknown command verb '%s'.\n", verb), Code: 1}
}

func stateAnswer(v view, good func(active) bool, bad int) Answer {
	a := Answer{Stdout: string(v.active) + "\n"}
	switch {
	case good(v.active):
	case !v.loaded:
		a.Code = codeNoUnit
	default:
		a.Code = bad
	}
	return a
}

func failure(doing, name string, err error) Answer {
	if err == nil {
		return Answer{}
	}
	a := Answer{Stderr: fmt.Sprintf("Failed to %s %s: %v\n", doing, name, err), Code: 1}
	if _, none := errors.AsType[*NotFoundError](err); none {
		a.Code = codeNotLoaded
		if doing == "stop" {
			a.Stderr = fmt.Sprintf("Failed to stop %s: Unit %s not loaded.\n", name, name)
		}
	}
	if errors.Is(err, errStartLimit) {
		a.Stderr = fmt.Sprintf("Job for %s failed because %v.\n", name, err)
	}
	return a
}

func (m *Manager) enable(ctx context.Context, name string, f flags) Answer {
	link, err := m.Enable(name)
	if err != nil {
		return Answer{Stderr: fmt.Sprintf("Failed to enable unit: Unit file %s does not exist.\n", name), Code: 1}
	}
	var a Answer
	if link != "" {
		target, _ := os.Readlink(link)
		a.Stderr = fmt.Sprintf("Created symlink %s → %s.\n", link, target)
	}
	if f.now {
		started := failure("start", name, m.Start(name))
		a.Stderr += started.Stderr
		a.Code = started.Code
	}
	return a
}

func (m *Manager) disable(ctx context.Context, name string, f flags) Answer {
	link, err := m.Disable(name)
	if err != nil {
		return Answer{Stderr: fmt.Sprintf("Failed to disable unit: Unit file %s does not exist.\n", name), Code: 1}
	}
	var a Answer
	if link != "" {
		a.Stderr = fmt.Sprintf("Removed \"%s\".\n", link)
	}
	if f.now {
		stopped := failure("stop", name, m.Stop(ctx, name))
		a.Stderr += stopped.Stderr
		a.Code = stopped.Code
	}
	return a
}

func (m *Manager) cat(_ context.Context, name string, _ flags) Answer {
	s := m.look(name)
	data, err := os.ReadFile(s.fragment)
	if err != nil {
		return Answer{Stderr: fmt.Sprintf("No files found for %s.\n", name), Code: 1}
	}
	return Answer{Stdout: "# " + s.fragment + "\n" + string(data)}
}

func (m *Manager) names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for n := range m.units {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
