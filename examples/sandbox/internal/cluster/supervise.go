package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/host"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/network"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/reap"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/wire"
)

// supervisor is the process that everything of a sandbox lives below. It is PID 1 of a process
// namespace, so when it ends, however it ends, the kernel ends the rest, and what was mounted and
// wired was in namespaces that go with it.
type supervisor struct {
	cfg     Config
	plans   []Plan
	reaper  *reap.Reaper
	net     *network.Network
	parent  *net.UnixConn
	started time.Time
	end     context.CancelFunc

	mu       sync.Mutex
	machines map[string]*host.Machine
	cut      map[string]bool
	ready    bool
	detached bool
}

// Supervise runs a sandbox until it is told to end, until ctx ends, or, unless it was detached,
// until whoever started it is gone. It is started by Up. It returns the exit status.
func Supervise(ctx context.Context, parts ...Part) int {
	ctx, end := context.WithCancel(ctx)
	defer end()
	s := &supervisor{started: time.Now(), end: end, machines: map[string]*host.Machine{}, cut: map[string]bool{}}
	if err := s.meetParent(); err != nil {
		fmt.Fprintln(os.Stderr, "sandbox: supervisor:", err)
		return 1
	}
	go s.followParent()
	err := s.run(ctx, parts)
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox: supervisor:", err)
		_ = wire.Send(s.parent, progress{Failure: wire.Fail(err)}) // it may be gone
		return 1
	}
	return 0
}

func (s *supervisor) meetParent() error {
	file := os.NewFile(3, "parent")
	if file == nil {
		return errors.New("this is started by `sandbox up`")
	}
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return fmt.Errorf("this is started by `sandbox up`: %w", err)
	}
	s.parent = conn.(*net.UnixConn)
	_, err = wire.Receive(s.parent, &s.cfg)
	return err
}

// followParent ends the sandbox when the process that started it is gone.
func (s *supervisor) followParent() {
	var nothing struct{}
	for {
		if _, err := wire.Receive(s.parent, &nothing); err != nil {
			break
		}
	}
	s.mu.Lock()
	detached := s.detached
	s.mu.Unlock()
	if !detached {
		s.end()
	}
}

func (s *supervisor) say(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	fmt.Fprintf(os.Stderr, "%6.2fs %s\n", time.Since(s.started).Seconds(), line)
	_ = wire.Send(s.parent, progress{Line: line}) // it may be gone
}

func (s *supervisor) run(ctx context.Context, parts []Part) error {
	lock, err := takeLock(s.cfg.Dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := prepareNamespaces(s.cfg.Dir); err != nil {
		return err
	}
	s.reaper = reap.New()
	if s.net, err = network.New(); err != nil {
		return err
	}
	l, err := wire.Listen(filepath.Join(s.cfg.Dir, socketFile))
	if err != nil {
		return err
	}
	s.plans = Layout(s.cfg)
	if err := s.makeHosts(); err != nil {
		return err
	}
	go s.serve(ctx, l)
	if err := s.bootAll(ctx); err != nil {
		return err
	}
	s.say("%d hosts answer", len(s.plans))
	if !s.cfg.HostsOnly {
		if err := s.assemble(ctx, parts); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.ready = true
	s.mu.Unlock()
	if err := wire.Send(s.parent, progress{Ready: true}); err != nil {
		return fmt.Errorf("tell who started this: %w", err)
	}
	<-ctx.Done()
	return nil
}

// takeLock makes sure that one sandbox at most has the state directory.
func takeLock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: another sandbox has this state directory: %w", dir, err)
	}
	return f, nil
}

// prepareNamespaces makes the mounts of this process its own: what is mounted from here on, the
// machine does not see.
func prepareNamespaces(dir string) error {
	if os.Getpid() != 1 {
		return errors.New("not in a process namespace of its own")
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("proc: %w", err)
	}
	mnt := filepath.Join(dir, mountDir)
	if err := os.MkdirAll(mnt, 0o700); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", mnt, "tmpfs", 0, "mode=0700"); err != nil {
		return fmt.Errorf("tmpfs: %w", err)
	}
	return nil
}

// makeHosts makes every host's disk, the operator's key, and the file of known host keys.
func (s *supervisor) makeHosts() error {
	login, err := operatorKey(s.cfg.Dir)
	if err != nil {
		return err
	}
	var order []string
	keys := map[string][]ssh.PublicKey{}
	var g errgroup.Group
	for _, p := range s.plans {
		private, public, err := hostKeys(p.Name)
		if err != nil {
			return err
		}
		order = append(order, p.Address)
		keys[p.Address] = public
		cfg := host.Config{
			Name: p.Name, Shape: s.cfg.Shapes[p.Name], Hosts: hostsText(s.plans, p.Name), Programs: s.cfg.Programs,
			SSH: s.cfg.SSH, HostKeys: private, Login: login, Forward: p.Forward,
		}
		g.Go(func() error {
			m, err := host.New(s.reaper, filepath.Join(s.cfg.Dir, mountDir), cfg, os.Stderr)
			if err != nil {
				return err
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.machines[p.Name] = m
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := writeKnownHosts(s.cfg.Dir, []byte(knownHosts(keys, order))); err != nil {
		return err
	}
	text, err := HostsYAML(Offered(s.plans), s.plans, s.cfg.Dir)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(s.cfg.Dir, HostsFile), text, 0o600)
}

// hostsText is the /etc/hosts of the host self: every host of the sandbox, and the registry.
func hostsText(plans []Plan, self string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "127.0.0.1 localhost\n127.0.1.1 %s\n::1 localhost ip6-localhost\n", self)
	for _, p := range plans {
		if p.Name != self {
			fmt.Fprintf(&out, "%s %s\n", p.Address, p.Name)
		}
	}
	fmt.Fprintf(&out, "%s registry\n", network.Registry)
	return out.String()
}

func (s *supervisor) bootAll(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range s.plans {
		g.Go(func() error {
			if err := s.boot(ctx, p.Name); err != nil {
				return err
			}
			return waitSSH(ctx, s.machines[p.Name])
		})
	}
	return g.Wait()
}

// boot starts a host and keeps it: one that asks to be started again is.
func (s *supervisor) boot(ctx context.Context, name string) error {
	plan, m := s.find(name)
	if m == nil {
		return fmt.Errorf("there is no host %q", name)
	}
	if err := m.Boot(ctx, func(pid int) error { return s.net.Attach(name, pid, plan.Place) }); err != nil {
		return err
	}
	ended := m.Ended()
	go func() {
		<-ended
		if m.Rebooting() {
			_ = m.Kill() // forgets the process that has ended
			if err := s.boot(context.WithoutCancel(ctx), name); err != nil {
				fmt.Fprintln(os.Stderr, "sandbox: supervisor:", err)
			}
		}
	}()
	return nil
}

func (s *supervisor) find(name string) (Plan, *host.Machine) {
	for _, p := range s.plans {
		if p.Name == name {
			return p, s.machines[name]
		}
	}
	return Plan{}, nil
}

// waitSSH waits until the host's SSH server greets. It asks from within the host, so that one
// behind the bastion is no harder to ask.
func waitSSH(ctx context.Context, m *host.Machine) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := m.Listens(22)
		if err == nil && ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("host %s: its SSH server does not listen (see `sandbox logs %s`): %w", m.Name(), m.Name(), errors.Join(context.Cause(ctx), err))
		case <-tick.C:
		}
	}
}
