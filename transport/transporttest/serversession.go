package transporttest

import (
	"context"
	"io"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/mkesdk/mkesdk/transport/internal/shell"
)

// An Exec is one command that a client runs on a [Server].
type Exec struct {
	User string // as logged in
	Wire string // the command as it came; empty for a login shell

	// Args and Sudo are the command before package transport wrote it for the wire; Args
	// is nil if another client did.
	Args []string
	Sudo bool

	// The streams, for a Handler. What reads like the end of Stdin may be the end of the
	// connection.
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// newExec makes the Exec of a command.
func newExec(user, wire string, ch ssh.Channel) *Exec {
	e := &Exec{User: user, Wire: wire, Stdin: ch, Stdout: ch, Stderr: ch.Stderr()}
	if r, ok := shell.Parse(wire); ok {
		e.Args, e.Sudo = r.Args, r.Sudo
	}
	return e
}

// A serverSession is one session channel.
type serverSession struct {
	conn *serverConn
	ch   ssh.Channel

	mu     sync.Mutex
	signal func(name string) bool // sends a signal to the command, once it runs
}

// serveSession answers the requests of a session until its channel is closed.
func serveSession(ctx context.Context, c *serverConn, ch ssh.Channel, reqs <-chan *ssh.Request) {
	ctx, cancel := context.WithCancel(ctx)
	s := &serverSession{conn: c, ch: ch}
	var running sync.WaitGroup
	started := false
	for req := range reqs {
		if c.server.Silence == SilentRun && started {
			continue
		}
		ok := false
		switch req.Type {
		case "exec", "shell":
			var cmd struct{ Command string }
			if started || req.Type == "exec" && ssh.Unmarshal(req.Payload, &cmd) != nil {
				break
			}
			if c.server.Silence == SilentExec {
				continue
			}
			ok, started = true, true
			if req.WantReply {
				_ = req.Reply(true, nil)
				req.WantReply = false
			}
			running.Go(func() { s.run(ctx, newExec(c.conn.User(), cmd.Command, ch)) })
		case "signal":
			var sig struct{ Name string }
			ok = ssh.Unmarshal(req.Payload, &sig) == nil && s.kill(sig.Name)
		}
		// A pty is refused, as a server does that has none left: clients go on without.
		// So is what would change the environment.
		if req.WantReply {
			_ = req.Reply(ok, nil)
		}
	}
	cancel()
	running.Wait()
	_ = ch.Close()
}

// kill passes a signal on.
func (s *serverSession) kill(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.signal != nil && s.signal(name)
}

func (s *serverSession) onSignal(f func(string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signal = f
}

// run runs a command, reports how it ended, and closes the session.
func (s *serverSession) run(ctx context.Context, e *Exec) {
	server := s.conn.server
	if server.OnExec != nil {
		server.OnExec(e)
	}
	var status int
	var signal string
	if server.Handler != nil {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		s.onSignal(func(string) bool { cancel(); return true })
		status = server.Handler(ctx, e)
		s.report(status, "")
	} else {
		status, signal = s.process(ctx, e)
	}
	if server.OnExit != nil {
		server.OnExit(e, status, signal)
	}
	_ = s.ch.Close()
}

// report tells the client how the command ended.
func (s *serverSession) report(status int, signal string) {
	if s.conn.server.Silence == SilentRun {
		return
	}
	if signal != "" {
		_, _ = s.ch.SendRequest("exit-signal", false, ssh.Marshal(struct {
			Signal  string
			Core    bool
			Message string
			Lang    string
		}{Signal: signal}))
		return
	}
	_, _ = s.ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(status)}))
}
