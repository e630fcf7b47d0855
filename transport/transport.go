// Package transport runs commands on a host over one SSH connection, direct or through
// any number of bastions.
//
// It has one small interface, [Conn], and plain functions over it ([Output], [ReadFile],
// [WriteFile], …), as io/fs has FS and fs.ReadFile. [Dial] makes a Conn of a [Config]; a
// [Dialer] makes many and lets them share their bastions.
//
// Three promises hold throughout. Nothing waits longer than its context, by more than
// half a second. An [*ExitError] means that a command ran and reported failure; any other
// error means that it is not known whether it ran. And no host is believed to be the
// right one without a key that the caller vouched for.
package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
)

// A Conn is a connection to one host. Its methods may be called from several goroutines at once.
type Conn interface {
	// Run runs cmd and waits for it to end. It returns an *[ExitError] if the command ran
	// and reported failure, and any other error if it is not known whether it ran. When
	// ctx ends Run tells the command to stop and returns within half a second; whether
	// the command did stop is then not known. Afterwards Run writes nothing more to
	// cmd.Stdout and cmd.Stderr, unless a Write had already begun and does not return; a
	// Read of cmd.Stdin that had already begun is left to end by itself.
	Run(ctx context.Context, cmd Command) error

	// Dial opens a connection to addr as seen from the host, so that what listens on the
	// host's loopback can be reached. The networks are "tcp", "tcp4", "tcp6" and "unix".
	// The connection outlives ctx, and understands deadlines.
	Dial(ctx context.Context, network, addr string) (net.Conn, error)

	// Close ends the connection and everything that runs over it. What is called
	// afterwards, or was waiting, fails with an error that matches [net.ErrClosed].
	// Closing twice is no error.
	Close() error

	// String names the host in logs and errors, as user@address:port.
	fmt.Stringer
}

// Effect says what a command does to the host it runs on.
type Effect uint8

// The effects a command may have. Whoever says nothing says that the command changes
// something, which plans and dry runs then leave out.
const (
	EffectChange Effect = iota // the host may be different afterwards
	EffectProbe                // something is tried on the host that leaves no trace when it has ended, such as a port that is listened on
	EffectNone                 // the command only looks
)

// String returns "change", "probe" or "none".
func (e Effect) String() string {
	switch e {
	case EffectChange:
		return "change"
	case EffectProbe:
		return "probe"
	case EffectNone:
		return "none"
	}
	return fmt.Sprintf("Effect(%d)", uint8(e))
}

// MarshalText makes an Effect readable in JSON.
func (e Effect) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// A Command is a program and its arguments. The arguments reach the program as given:
// quoting for the remote shell is this package's work. Programs run with LC_ALL=C, so
// that what they print can be read.
type Command struct {
	Args   []string  // the program, then its arguments; at most about 100 KiB in all, and no NUL bytes
	Sudo   bool      // run as root: through sudo, unless the user is root already
	Stdin  io.Reader // nil for empty; an error of it ends the command
	Stdout io.Writer // nil to discard; an error of it ends the command
	Stderr io.Writer // nil to keep only the tail, which ExitError has

	// Secrets are replaced by a mask wherever the command, or the tail of what it wrote
	// to its standard error, is shown. Pass a secret by Stdin: in Args every user of the
	// host could read it.
	Secrets []string

	// Effect is what the command does to the host. The zero value says that it changes something.
	Effect Effect
}

// An ExitError says that a command ran and failed.
type ExitError struct {
	Host    string // as Conn.String gives it
	Command string // as Command.String gives it, secrets masked
	Status  int    // the exit status, 1 to 255, or -1 if a signal ended the command
	Signal  string // the signal that ended it, without SIG, such as "KILL"; empty if none did
	Stderr  string // the tail of its standard error, secrets masked
}

// Error names the host, the command, and how it ended.
func (e *ExitError) Error() string {
	how := fmt.Sprintf("exit status %d", e.Status)
	if e.Signal != "" {
		how = "ended by signal " + e.Signal
	}
	s := e.Host + ": " + e.Command + ": " + how
	if tail := strings.TrimSpace(e.Stderr); tail != "" {
		s += ": " + tail
	}
	return s
}

// Errors that tell apart why a host, or root on it, could not be reached. Test with [errors.Is].
var (
	// ErrAuth: the host accepted none of the keys that were offered, or no key could be offered.
	ErrAuth = errors.New("not authenticated")

	// ErrHostKey: the host key is unknown, revoked or another than the known one. The
	// error is a *[HostKeyError], and trying again is of no use.
	ErrHostKey = errors.New("host key not accepted")

	// ErrConnectionLost: the connection ended, or its other end stopped answering, while
	// it was needed.
	ErrConnectionLost = errors.New("connection lost")

	// ErrSudo: sudo did not let the command run. The four below match it as well.
	ErrSudo = errors.New("sudo refused")

	// ErrSudoPassword: sudo wants a password, and there is none or it was wrong.
	ErrSudoPassword = fmt.Errorf("%w: password", ErrSudo)

	// ErrSudoDenied: the user may not use sudo, or not for this.
	ErrSudoDenied = fmt.Errorf("%w: not allowed", ErrSudo)

	// ErrSudoTTY: sudo is set up (requiretty) to work on terminals only.
	ErrSudoTTY = fmt.Errorf("%w: wants a terminal", ErrSudo)

	// ErrSudoMissing: the host has no sudo.
	ErrSudoMissing = fmt.Errorf("%w: not installed", ErrSudo)
)
