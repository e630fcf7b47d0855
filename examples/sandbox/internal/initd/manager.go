// Package initd is the init system of a sandbox host: PID 1, which keeps services as systemd
// does as far as k0s and the SDK ask systemd for anything.
package initd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/reap"
)

// Manager keeps the services of one host. Make it with NewManager.
type Manager struct {
	reaper *reap.Reaper
	dir    string // where unit files are
	logs   string // where services' output goes
	env    []string

	mu      sync.Mutex
	units   map[string]*service
	closing bool
}

// NewManager returns a manager of the unit files in dir, whose services' output goes to files in
// logs and whose environment is env.
func NewManager(r *reap.Reaper, dir, logs string, env []string) *Manager {
	return &Manager{reaper: r, dir: dir, logs: logs, env: env, units: map[string]*service{}}
}

// NotFoundError says that there is no unit of that name.
type NotFoundError struct{ Unit string }

// Error implements error.
func (e *NotFoundError) Error() string { return "Unit " + e.Unit + " not found." }

// fullName is the unit's name with its suffix.
func fullName(name string) string {
	if filepath.Ext(name) == "" {
		return name + ".service"
	}
	return name
}

func (m *Manager) logFile(name string) string {
	return filepath.Join(m.logs, strings.TrimSuffix(name, ".service")+".log")
}

func (m *Manager) logf(s *service, format string, args ...any) {
	f, err := os.OpenFile(m.logFile(s.name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return // a log that cannot be written has nobody to tell
	}
	defer f.Close()
	fmt.Fprintf(f, "init: "+format+"\n", args...)
}

// AddBuiltin adds a service that no file describes: the host's own SSH server.
func (m *Manager) AddBuiltin(name, text string) error {
	u, err := parseUnit(fullName(name), text)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.units[u.name] = newService(u)
	return nil
}

// find gives the service of that name, reading its file where it is not known yet. As with
// systemd, what is known stays as it was read until Reload. The lock is held.
func (m *Manager) find(name string) (*service, error) {
	name = fullName(name)
	if s := m.units[name]; s != nil {
		return s, nil
	}
	u, err := m.read(name)
	if err != nil {
		return nil, err
	}
	s := newService(u)
	m.units[name] = s
	return s, nil
}

func (m *Manager) read(name string) (unit, error) {
	if name != filepath.Base(name) || !strings.HasSuffix(name, ".service") {
		return unit{}, &NotFoundError{Unit: name}
	}
	path := filepath.Join(m.dir, name)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return unit{}, &NotFoundError{Unit: name}
	}
	if err != nil {
		return unit{}, err
	}
	u, err := parseUnit(name, string(data))
	u.fragment = path
	return u, err
}

// Reload reads the unit files again; a service that runs goes on and takes what is new when it
// is started next.
func (m *Manager) Reload() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, s := range m.units {
		if s.fragment == "" {
			continue
		}
		u, err := m.read(name)
		if _, gone := errors.AsType[*NotFoundError](err); gone {
			s.gone = true
			m.forget(s)
			continue
		}
		if err == nil {
			s.unit, s.gone = u, false
		}
	}
}

// forget drops a service whose file is gone, once it neither runs nor has failed. The lock is held.
func (m *Manager) forget(s *service) {
	if s.gone && s.proc == nil && s.active == inactive {
		delete(m.units, s.name)
	}
}

// Start starts a service; one that runs is left alone. It returns once its process is there: as
// with systemd's simple services, not once it is ready.
func (m *Manager) Start(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.find(name)
	if err != nil {
		return err
	}
	if s.proc != nil || s.sub == "exited" {
		return nil
	}
	if s.gone {
		return &NotFoundError{Unit: s.name}
	}
	if s.retry != nil {
		s.retry.Stop()
		s.retry = nil
	}
	return m.launch(s)
}

// Stop stops a service and waits until it is gone, for as long as its unit allows or until ctx
// ends. One that does not run is no error.
func (m *Manager) Stop(ctx context.Context, name string) error {
	m.mu.Lock()
	s, err := m.find(name)
	if err != nil {
		m.mu.Unlock()
		return err
	}
	gone := m.halt(s)
	m.mu.Unlock()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop %s: %w", name, context.Cause(ctx))
	}
}

// ResetFailed takes a service out of the failed state; without a name, all.
func (m *Manager) ResetFailed(names ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]*service, 0, len(names))
	for _, n := range names {
		s, err := m.find(n)
		if err != nil {
			return err
		}
		all = append(all, s)
	}
	if len(names) == 0 {
		for _, s := range m.units {
			all = append(all, s)
		}
	}
	for _, s := range all {
		s.starts, s.restarts = nil, 0
		if s.active == failed {
			s.result = "success"
			s.enter(inactive, "dead")
			m.forget(s)
		}
	}
	return nil
}

// wants is where a link stands for each unit that is started at boot.
func (m *Manager) wants() string { return filepath.Join(m.dir, "multi-user.target.wants") }

// Enable makes a unit start at boot and returns the link that says so, empty if it was there.
func (m *Manager) Enable(name string) (string, error) {
	m.Reload()
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.find(name)
	if err != nil {
		return "", err
	}
	if s.fragment == "" {
		return "", nil
	}
	link := filepath.Join(m.wants(), s.name)
	if err := os.MkdirAll(m.wants(), 0o755); err != nil {
		return "", err
	}
	if err := os.Symlink(s.fragment, link); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return "", nil
		}
		return "", err
	}
	return link, nil
}

// Disable takes the link of Enable away and returns it, empty if there was none.
func (m *Manager) Disable(name string) (string, error) {
	defer m.Reload()
	link := filepath.Join(m.wants(), filepath.Base(fullName(name)))
	switch err := os.Remove(link); {
	case errors.Is(err, fs.ErrNotExist):
		m.mu.Lock()
		defer m.mu.Unlock()
		_, err := m.find(name)
		return "", err
	case err != nil:
		return "", err
	}
	return link, nil
}

// StartEnabled starts what is to run after a boot: the built-in services and the enabled units.
func (m *Manager) StartEnabled() error {
	var names []string
	m.mu.Lock()
	for name, s := range m.units {
		if s.fragment == "" {
			names = append(names, name)
		}
	}
	m.mu.Unlock()
	links, err := os.ReadDir(m.wants())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, l := range links {
		names = append(names, l.Name())
	}
	slices.Sort(names)
	var errs []error
	for _, n := range names {
		errs = append(errs, m.Start(n))
	}
	return errors.Join(errs...)
}

// Close stops every service, last of all what is built in, and lets none start again.
func (m *Manager) Close(ctx context.Context) {
	m.mu.Lock()
	m.closing = true
	var gone []<-chan struct{}
	for _, s := range m.units {
		if s.fragment != "" {
			gone = append(gone, m.halt(s))
		}
	}
	m.mu.Unlock()
	for _, g := range gone {
		select {
		case <-g:
		case <-ctx.Done():
			return
		}
	}
}
