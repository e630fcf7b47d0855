package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/host"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/wire"
)

// serve answers requests on the control socket until ctx ends.
func (s *supervisor) serve(ctx context.Context, l *net.UnixListener) {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			if ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, "sandbox: supervisor: accept:", err)
				s.end()
			}
			return
		}
		go func() {
			defer c.Close()
			s.answer(ctx, c)
		}()
	}
}

func (s *supervisor) answer(ctx context.Context, c *net.UnixConn) {
	var req request
	files, err := wire.Receive(c, &req)
	for _, f := range files {
		_ = f.Close()
	}
	if err != nil {
		return
	}
	// A caller that hangs up wants no more of it.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		var nothing struct{}
		_, _ = wire.Receive(c, &nothing)
		cancel()
	}()
	r, file, err := s.do(ctx, req)
	if err != nil {
		r.Failure = wire.Fail(err)
	}
	if file != nil {
		defer file.Close()
		_ = wire.Send(c, r, file) // a caller that is gone needs no answer
		return
	}
	_ = wire.Send(c, r)
	if req.Op == opDown {
		s.end()
	}
}

func (s *supervisor) do(ctx context.Context, req request) (reply, *os.File, error) {
	switch req.Op {
	case opStatus:
		return reply{Status: s.status()}, nil, nil
	case opDetach:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.detached = true
		return reply{}, nil, nil
	case opDown:
		return reply{}, nil, nil
	case opNetns:
		f, err := os.Open("/proc/self/ns/net")
		return reply{}, f, err
	case opDial:
		f, err := dial(ctx, req)
		return reply{}, f, err
	}
	_, m := s.find(req.Host)
	if m == nil {
		return reply{}, nil, fmt.Errorf("there is no host %q in this sandbox", req.Host)
	}
	return s.onHost(ctx, req, m)
}

func (s *supervisor) onHost(ctx context.Context, req request, m *host.Machine) (reply, *os.File, error) {
	switch req.Op {
	case opInit:
		c, err := m.Conn(ctx)
		if err != nil {
			return reply{}, nil, err
		}
		defer c.Close()
		f, err := c.File()
		return reply{}, f, err
	case opFault:
		return reply{}, nil, s.fault(ctx, req.Fault, m)
	case opSnapshot:
		snap, err := m.Snapshot()
		return reply{Snapshot: snap}, nil, err
	case opCommands:
		list, err := m.Commands()
		return reply{Commands: list}, nil, err
	}
	return reply{}, nil, fmt.Errorf("the sandbox that runs does not know %q; it may be of another version", req.Op)
}

// dial connects from the operator's side.
func dial(ctx context.Context, req request) (*os.File, error) {
	d := net.Dialer{Timeout: req.Timeout}
	c, err := d.DialContext(ctx, req.Network, req.Address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return nil, fmt.Errorf("dial %s %s: only TCP is passed on", req.Network, req.Address)
	}
	return tcp.File()
}

func (s *supervisor) status() *Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := &Status{Dir: s.cfg.Dir, Ready: s.ready, Started: s.started, SSH: s.cfg.SSH}
	for _, p := range s.plans {
		m := s.machines[p.Name]
		st.Hosts = append(st.Hosts, HostStatus{Plan: p, MachineID: m.ID(), Up: m.Pid() != 0, Cut: s.cut[p.Name]})
	}
	return st
}

// shutdownWait is how long a host's services may take when it is rebooted.
const shutdownWait = 30 * time.Second

func (s *supervisor) fault(ctx context.Context, f Fault, m *host.Machine) error {
	name := m.Name()
	switch f {
	case Kill:
		return m.Kill()
	case Start:
		if m.Pid() != 0 {
			return nil
		}
		if err := m.Kill(); err != nil { // forgets a process that has ended
			return err
		}
		return s.bootAndWait(ctx, m)
	case Reboot:
		wait, cancel := context.WithTimeout(ctx, shutdownWait)
		err := m.Shutdown(wait)
		cancel()
		if err != nil {
			return err
		}
		return s.bootAndWait(ctx, m)
	case Cut, Heal:
		if err := s.net.Link(name, f == Heal); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cut[name] = f == Cut
		return nil
	}
	return fmt.Errorf("fault %q: want one of %v", f, Faults())
}

func (s *supervisor) bootAndWait(ctx context.Context, m *host.Machine) error {
	if err := s.boot(ctx, m.Name()); err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.cut, m.Name()) // a cable is new with each start
	s.mu.Unlock()
	return waitSSH(ctx, m)
}

// path is a file of the state directory.
func (s *supervisor) path(name string) string { return filepath.Join(s.cfg.Dir, name) }
