package transport

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// A session is one command on its way through an SSH channel.
type session struct {
	c    *Client
	cmd  Command
	out  *output
	err  *output
	in   atomic.Int64 // bytes sent
	ch   ssh.Channel
	reqs <-chan *ssh.Request

	began    atomic.Bool
	start    chan struct{} // closed when the command has begun
	startOne sync.Once
	exited   chan struct{} // closed when the exit status has arrived
	ended    chan struct{} // closed when the channel is
	failed   chan error    // what ends the command from our side; the first counts
	quit     chan struct{} // closed when nobody waits for the command any more
	quitOne  sync.Once
	inputEnd chan struct{} // closed when standard input is not read any more

	mu     sync.Mutex
	status int
	signal string
	known  bool
	asked  int  // how often sudo asked for a password
	turn   bool // we have the turn with it
	over   bool // and will not have it any more
}

func newSession(c *Client, cmd Command) *session {
	s := &session{
		c: c, cmd: cmd, start: make(chan struct{}), exited: make(chan struct{}), ended: make(chan struct{}),
		failed: make(chan error, 4), quit: make(chan struct{}), inputEnd: make(chan struct{}),
	}
	mark := "mkesdk-" + rand.Text()
	m := newMask(cmd.Secrets)
	s.out = &output{mark: mark, w: cmd.Stdout, mask: m, started: s.begin, asked: func() {}}
	s.err = &output{mark: mark, w: cmd.Stderr, mask: m, started: s.begin, asked: func() {}}
	if cmd.Sudo && c.hop.SudoPassword != nil {
		s.err.prompt = "mkesdk-" + rand.Text()
	}
	return s
}

// begin notes that the program runs: sudo, if it was asked, has let it.
func (s *session) begin() {
	s.startOne.Do(func() {
		s.began.Store(true)
		s.settleSudo(nil, false)
		close(s.start)
	})
}

// openTries bounds how often a session is asked for when none of ours runs.
const openTries = 6

// open opens a session channel. A server that is at its limit refuses; then the budget
// shrinks to what it allows and we wait for one of ours to end.
func (s *session) open(ctx context.Context) error {
	alone := 0
	for {
		if !s.c.sessions.acquire(ctx, s.c.dead) {
			if ctx.Err() != nil {
				return s.wrap(fmt.Errorf("wait for a session: %w", ctxErr(ctx)))
			}
			return s.c.ended()
		}
		ch, reqs, err := s.c.ssh.OpenChannel("session", nil)
		if err == nil {
			s.ch, s.reqs = ch, reqs
			return nil // even if nobody waits any more: then it is closed in good order
		}
		refused, ok := errors.AsType[*ssh.OpenChannelError](err)
		if !ok {
			s.c.sessions.release()
			return s.broken()
		}
		if !s.c.sessions.lower() {
			if alone++; alone == openTries {
				return s.wrap(fmt.Errorf("the host opens no session: %w", refused))
			}
		}
		select { // the server may notice later than we do that a session has ended
		case <-time.After(50 * time.Millisecond << min(alone, openTries)):
		case <-s.quit:
			return s.wrap(context.Canceled)
		case <-s.c.dead:
			return s.c.ended()
		}
	}
}

// close ends the channel, and gives its place in the budget back once the host has done
// so too. A command that has not ended is told to: most servers leave one running whose
// channel is closed, until it writes something.
func (s *session) close() {
	s.settleSudo(nil, true)
	go func() {
		if _, _, known := s.exitStatus(); !known {
			_, _ = s.ch.SendRequest("signal", false, ssh.Marshal(struct{ Signal string }{"TERM"}))
		}
		_ = s.ch.Close() // it is closed already, or the connection is over
		for range s.reqs {
		}
		s.c.sessions.release()
	}()
}

// stop tells the command to end, if it has not.
func (s *session) stop() { s.quitOne.Do(func() { close(s.quit) }) }

// detach makes sure that the caller's reader and writers are left alone.
func (s *session) detach() {
	s.out.detach(settle / 2)
	s.err.detach(settle / 2)
	select {
	case <-s.inputEnd:
	case <-time.After(settle / 2):
	}
}

// fail ends the command from our side.
func (s *session) fail(err error) {
	select {
	case s.failed <- err:
	default: // there are reasons enough
	}
}

// awaitExit reads what the host says of the command until the channel is closed.
func (s *session) awaitExit() {
	defer close(s.ended)
	for req := range s.reqs {
		var status struct{ Status uint32 }
		var signal struct {
			Signal  string
			Core    bool
			Message string
			Lang    string
		}
		switch req.Type {
		case "exit-status":
			if ssh.Unmarshal(req.Payload, &status) == nil {
				s.exit(int(status.Status), "")
			}
		case "exit-signal":
			if ssh.Unmarshal(req.Payload, &signal) == nil {
				s.exit(-1, signal.Signal)
			}
		default:
			if req.WantReply {
				_ = req.Reply(false, nil) // keep-alive of the server
			}
		}
	}
}

func (s *session) exit(status int, signal string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known {
		s.status, s.signal, s.known = status, signal, true
		close(s.exited)
	}
}

func (s *session) exitStatus() (status int, signal string, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status, s.signal, s.known
}

// pumpOutputs carries what the command writes. The result is closed when both its outputs
// have ended.
func (s *session) pumpOutputs() <-chan struct{} {
	var wg sync.WaitGroup
	pump := func(r io.Reader, o *output, name string) {
		buf := make([]byte, 32<<10)
		for {
			n, err := r.Read(buf)
			if n > 0 {
				if err := o.take(buf[:n]); err != nil {
					s.fail(fmt.Errorf("write its standard %s: %w", name, err))
				}
			}
			if err != nil {
				return
			}
		}
	}
	wg.Go(func() { pump(s.ch, s.out, "output") })
	wg.Go(func() { pump(s.ch.Stderr(), s.err, "error") })
	drained := make(chan struct{})
	go func() {
		wg.Wait()
		close(drained)
	}()
	return drained
}
