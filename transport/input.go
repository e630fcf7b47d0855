package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// pumpInput carries the caller's standard input to the command. Where sudo may ask for a
// password it waits until the program runs, so that sudo cannot take the input for one,
// nor the program the password for input.
func (s *session) pumpInput() {
	defer close(s.inputEnd)
	if s.err.prompt != "" {
		select {
		case <-s.start:
		case <-s.ended:
			return
		case <-s.quit:
			return
		}
	}
	if s.cmd.Stdin == nil {
		_ = s.ch.CloseWrite() // if it fails, the channel is closed, which the exit tells
		return
	}
	buf := make([]byte, 32<<10)
	for {
		select {
		case <-s.quit:
			return
		case <-s.ended:
			return
		default:
		}
		n, err := s.cmd.Stdin.Read(buf)
		if n > 0 {
			if _, err := s.ch.Write(buf[:n]); err != nil {
				return // the command reads no more; its exit tells why
			}
			s.in.Add(int64(n))
		}
		switch {
		case errors.Is(err, io.EOF):
			_ = s.ch.CloseWrite()
			return
		case err != nil:
			s.fail(fmt.Errorf("read what is to be its standard input: %w", err))
			return
		}
	}
}

// askPassword answers sudo. It is called with each prompt: the first is answered, the
// second means that the answer was wrong.
func (s *session) askPassword(ctx context.Context) {
	s.mu.Lock()
	s.asked++
	again := s.asked > 1
	s.mu.Unlock()
	if again {
		s.settleSudo(errWrongPassword, false)
		s.fail(errWrongPassword)
		return
	}
	go func() {
		password, err := s.c.sudo.take(ctx, s.c.hop.SudoPassword)
		if err != nil {
			s.fail(err)
			return
		}
		s.out.hide(password)
		s.err.hide(password)
		s.mu.Lock()
		over := s.over
		s.turn = !over
		s.mu.Unlock()
		if over {
			s.c.sudo.settle(nil)
			return
		}
		_, _ = s.ch.Write([]byte(password + "\n")) // if sudo is gone, the exit tells why
	}()
}

// settleSudo ends our turn with the password, if we have it. After the last call no turn
// is taken any more.
func (s *session) settleSudo(refused error, last bool) {
	s.mu.Lock()
	turn := s.turn
	s.turn = false
	s.over = s.over || last
	s.mu.Unlock()
	if turn {
		s.c.sudo.settle(refused)
	}
}
