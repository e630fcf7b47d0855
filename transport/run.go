package transport

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/mkesdk/mkesdk/transport/internal/shell"
)

// Run runs cmd on the host under /bin/sh, whatever the user's login shell is. Sudo asks
// for a password only if it needs one and Config.SudoPassword is set.
func (c *Client) Run(ctx context.Context, cmd Command) error {
	start := time.Now()
	s := newSession(c, cmd)
	err := s.run(ctx)
	if c.trace != nil {
		call := Call{
			Host: c.String(), Command: cmd.String(), Effect: cmd.Effect, Start: start, Duration: time.Since(start),
			Status: -1, Err: err, In: s.in.Load(), Out: s.out.n.Load() + s.err.n.Load(),
		}
		if exit, ok := errors.AsType[*ExitError](err); ok {
			call.Status = exit.Status
		} else if err == nil {
			call.Status = 0
		}
		c.trace(call)
	}
	return err
}

// run runs the session's command until it or ctx ends.
func (s *session) run(ctx context.Context) error {
	if err := s.cmd.check(); err != nil {
		return s.wrap(err)
	}
	req := shell.Request{Args: s.cmd.Args, Mark: s.out.mark, Sudo: s.cmd.Sudo && s.c.hop.User != "root", Prompt: s.err.prompt}
	wire := shell.Wire(req)
	if len(wire) > shell.MaxWire {
		return s.wrap(fmt.Errorf("the command is %d bytes long as it is sent, of which Linux takes %d: pass data on standard input", len(wire), shell.MaxWire))
	}
	if ctx.Err() != nil {
		return s.wrap(ctxErr(ctx))
	}
	done := make(chan error, 1)
	go func() { done <- s.serve(ctx, wire) }()
	select {
	case err := <-done:
		s.stop()
		s.detach()
		return err
	case <-ctx.Done():
	}
	s.stop()
	s.detach()
	return s.wrap(ctxErr(ctx))
}

// wrap says on which host and in which command err happened. The result is never an ExitError.
func (s *session) wrap(err error) error {
	return fmt.Errorf("%s: %s: %w", s.c, s.cmd, err)
}

// serve opens a session, runs the command in it, and says how it ended.
func (s *session) serve(ctx context.Context, wire string) error {
	if err := s.open(ctx); err != nil {
		close(s.inputEnd)
		return err
	}
	defer s.close()
	if err := s.exec(wire); err != nil {
		close(s.inputEnd)
		return err
	}
	s.err.asked = func() { s.askPassword(ctx) }
	go s.awaitExit()
	drained := s.pumpOutputs()
	go s.pumpInput()
	if err := s.await(ctx, drained); err != nil {
		return err
	}
	return s.verdict()
}

// exec asks the host to start the command.
func (s *session) exec(wire string) error {
	type answer struct {
		ok  bool
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		ok, err := s.ch.SendRequest("exec", true, ssh.Marshal(struct{ Command string }{wire}))
		answers <- answer{ok, err}
	}()
	select {
	case a := <-answers:
		switch {
		case a.err != nil:
			return s.broken()
		case !a.ok:
			return s.wrap(errors.New("the host does not run commands for this user"))
		}
		return nil
	case <-s.quit:
		return s.wrap(context.Canceled)
	}
}

const (
	looks      = 500 * time.Millisecond // between looks at an ended command whose output has not ended
	heldOutput = 2 * time.Second        // of silence after which something else is taken to hold the output open
)

// await waits until the command and its output have ended. A process that the command
// left behind may hold the output open for ever: it is not waited for, once the host has
// answered that everything before has been sent.
func (s *session) await(ctx context.Context, drained <-chan struct{}) error {
	exited := s.exited
	var asks, tick <-chan time.Time
	if s.err.prompt != "" {
		ticker := time.NewTicker(looks)
		defer ticker.Stop()
		asks = ticker.C
	}
	for {
		select {
		case err := <-s.failed:
			return s.wrap(err)
		case <-s.quit:
			return s.wrap(context.Canceled)
		case <-exited:
			exited = nil
			ticker := time.NewTicker(looks)
			defer ticker.Stop()
			tick = ticker.C
		case <-asks: // a PAM module may ask in words of its own
			if !s.began.Load() && s.err.asks(2*looks) {
				s.askPassword(ctx)
			}
		case <-tick:
			if quiet := min(s.out.quiet(), s.err.quiet()); quiet >= heldOutput {
				if s.flushed() && min(s.out.quiet(), s.err.quiet()) >= quiet {
					return nil
				}
			}
		case <-drained:
			drained = nil
			select { // the exit status may come after the end of the output
			case <-s.ended:
				return s.late()
			case <-s.exited:
				return s.late()
			case err := <-s.failed:
				return s.wrap(err)
			case <-s.quit:
				return s.wrap(context.Canceled)
			}
		}
	}
}

// late returns a failure that came at the same moment as the end.
func (s *session) late() error {
	select {
	case err := <-s.failed:
		return s.wrap(err)
	default:
		return nil
	}
}

// flushed asks the host for an answer, which comes after all that was sent before.
func (s *session) flushed() bool {
	answer := make(chan bool, 1)
	go func() {
		_, _, err := s.c.ssh.SendRequest("keepalive@openssh.com", true, nil)
		answer <- err == nil
	}()
	select {
	case ok := <-answer:
		return ok
	case <-s.quit:
		return false
	}
}

// verdict says how the command ended.
func (s *session) verdict() error {
	status, signal, known := s.exitStatus()
	switch {
	case !known:
		return s.broken()
	case !s.began.Load():
		return s.notStarted(status)
	case status == 0 && signal == "":
		return nil
	}
	return &ExitError{Host: s.c.String(), Command: s.cmd.String(), Status: status, Signal: signal, Stderr: s.err.shown()}
}

// broken is the error of a session that ended without saying how.
func (s *session) broken() error {
	if s.c.over(settle) {
		return fmt.Errorf("%w: while it ran %s", s.c.ended(), s.cmd)
	}
	return s.wrap(errors.New("the host ended the session without an exit status"))
}

// notStarted is the error of a command that something before it kept from running.
func (s *session) notStarted(status int) error {
	said := s.err.before()
	if s.cmd.Sudo {
		return s.wrap(sudoError(said, s.err.prompt != ""))
	}
	if said == "" {
		said = s.out.before()
	}
	return s.wrap(fmt.Errorf("the login shell ended with status %d before it ran the command: %q", status, said))
}
