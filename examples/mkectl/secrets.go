package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/term"
)

// secrets are what a person has to say while an operation runs. Each is asked for
// once, however many hosts want it.
type secrets struct {
	env  string // MKE_SUDO_PASSWORD
	in   *os.File
	out  aboveWriter
	stop <-chan struct{}

	mu    sync.Mutex
	known map[string][]byte
}

// sudo returns the password that sudo wants.
func (s *secrets) sudo(ctx context.Context) (string, error) {
	if s.env != "" {
		return s.env, nil
	}
	p, err := s.ask(ctx, "sudo password of the hosts: ")
	if errors.Is(err, errNoTerminal) {
		err = fmt.Errorf("sudo wants a password: set MKE_SUDO_PASSWORD, or run mkectl on a terminal: %w", err)
	}
	return string(p), err
}

// passphrase returns the passphrase of an encrypted private key.
func (s *secrets) passphrase(ctx context.Context, file string) ([]byte, error) {
	p, err := s.ask(ctx, "passphrase of "+file+": ")
	if errors.Is(err, errNoTerminal) {
		err = fmt.Errorf("the private key %s is encrypted: add it to an SSH agent, or run mkectl on a terminal: %w", file, err)
	}
	return p, err
}

var errNoTerminal = errors.New("standard input is no terminal")

// ask reads a line that is not shown. It gives up when ctx is done, or a stop is
// asked for.
func (s *secrets) ask(ctx context.Context, prompt string) (secret []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.known[prompt]; ok {
		return p, nil
	}
	fd := int(s.in.Fd())
	state, err := term.GetState(fd)
	if err != nil {
		return nil, errNoTerminal
	}
	s.out.p.above(func() {
		fmt.Fprint(s.out.w, prompt)
		read := make(chan struct{})
		var line []byte
		var readErr error
		go func() {
			defer close(read)
			line, readErr = term.ReadPassword(fd)
		}()
		select {
		case <-read:
			secret, err = line, readErr
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-s.stop:
			err = errors.New("stopped as asked")
		}
		_ = term.Restore(fd, state) // the read above does so itself unless it was given up
		fmt.Fprintln(s.out.w)
	})
	if err == nil {
		if s.known == nil {
			s.known = map[string][]byte{}
		}
		s.known[prompt] = secret
	}
	return secret, err
}
