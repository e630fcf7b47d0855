package transport

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// A sudoAuth knows a host's sudo password. Commands that sudo asks for it take turns: a
// wrong password is then tried once and not once for each command, which would lock the
// account.
type sudoAuth struct {
	turn     chan struct{} // holds one token; whoever has it may touch what follows
	password string
	known    bool
	wrong    error // what sudo refused the password with
}

func newSudoAuth() sudoAuth {
	a := sudoAuth{turn: make(chan struct{}, 1)}
	a.turn <- struct{}{}
	return a
}

// take waits for its turn and returns the password. Without an error, the caller ends the
// turn with settle.
func (a *sudoAuth) take(ctx context.Context, ask func(context.Context) (string, error)) (string, error) {
	select {
	case <-a.turn:
	case <-ctx.Done():
		return "", ctxErr(ctx)
	}
	err := a.wrong
	if err == nil && !a.known {
		if a.password, err = ask(ctx); err == nil && strings.ContainsAny(a.password, "\n\x00") {
			err = errors.New("it has a line break or a NUL byte")
		}
		if err != nil {
			a.password, err = "", fmt.Errorf("%w: ask for it: %w", ErrSudoPassword, err)
		}
		a.known = err == nil
	}
	if err != nil {
		a.turn <- struct{}{}
		return "", err
	}
	return a.password, nil
}

// settle ends a turn. The error is what sudo refused the password with, if it did.
func (a *sudoAuth) settle(refused error) {
	if refused != nil {
		a.wrong = refused
	}
	a.turn <- struct{}{}
}

// errWrongPassword is what a second question for the password means.
var errWrongPassword = fmt.Errorf("%w: the one given is wrong, and is not tried again", ErrSudoPassword)

// sudoSays maps what sudo prints to errors, first match first. The texts are those of
// sudo and of sudo-rs, in English because commands run with LC_ALL=C.
func sudoSays() []sudoText {
	return []sudoText{
		{"you must have a tty", ErrSudoTTY},
		{"not in the sudoers", ErrSudoDenied},
		{"may not run sudo", ErrSudoDenied},
		{"not allowed to", ErrSudoDenied},
		{"I'm afraid I can't do that", ErrSudoDenied},
		{"password is required", ErrSudoPassword},
		{"authentication is required", ErrSudoPassword},
		{"no password was provided", ErrSudoPassword},
		{"incorrect password", ErrSudoPassword},
		{"incorrect authentication", ErrSudoPassword},
		{"try again", ErrSudoPassword},
		{"sudo: not found", ErrSudoMissing},
		{"sudo: No such file", ErrSudoMissing},
		{"sudo: command not found", ErrSudoMissing},
	}
}

type sudoText struct {
	text string
	err  error
}

// sudoError makes an error of what sudo printed instead of running a command.
func sudoError(said string, askable bool) error {
	kind := ErrSudo
	for _, s := range sudoSays() {
		if strings.Contains(strings.ToLower(said), strings.ToLower(s.text)) {
			kind = s.err
			break
		}
	}
	if said = strings.TrimSpace(said); said == "" {
		said = "it gave no reason"
	}
	if kind == ErrSudoPassword && !askable {
		said += " (Config.SudoPassword is not set)"
	}
	return fmt.Errorf("%w: %s", kind, said)
}
