package transporttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mkesdk/mkesdk/transport"
)

// A Host is a fake host. It keeps files in memory, which [transport.ReadFile] and
// [transport.WriteFile] find without further ado, and answers commands with the handlers
// it was given. A command that no handler takes fails the test, so that a misspelt
// command cannot pass unseen.
type Host struct {
	t    testing.TB
	name string

	mu       sync.Mutex
	handlers []handler
	onFile   func(op, name string) error
	dial     func(ctx context.Context, network, addr string) (net.Conn, error)
	files    map[string]File
	calls    []transport.Call
	conns    []net.Conn
	closed   chan struct{}
	once     sync.Once
}

var _ transport.Conn = (*Host)(nil)

// A File is one of a Host's files.
type File struct {
	Data  string
	Mode  string // as chmod takes it: four octal digits
	Owner string // as WriteFile was given it; empty for root
}

// A Handler answers a command. It reads cmd.Stdin, writes cmd.Stdout and cmd.Stderr,
// which are never nil, and returns nil or what Exit makes; any other error stands for a
// connection that broke. It is called from several goroutines at once if the Conn is.
type Handler func(ctx context.Context, cmd transport.Command) error

type handler struct {
	prefix []string
	f      Handler
}

// New returns a host that reports to t. The name is what String returns: user@address:port.
func New(t testing.TB, name string) *Host {
	return &Host{t: t, name: name, files: make(map[string]File), closed: make(chan struct{})}
}

// Exit is the error by which a Handler makes its command fail with a status.
func Exit(status int) error { return exitStatus(status) }

type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Handle makes f answer the commands whose first arguments are prefix; all commands if
// there is none. Of several handlers that fit, the one with the longest prefix answers,
// and of those the one that came last.
func (h *Host) Handle(f Handler, prefix ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.handlers = append(h.handlers, handler{prefix: slices.Clone(prefix), f: f})
}

// Answer makes commands that begin with prefix succeed and print stdout.
func (h *Host) Answer(stdout string, prefix ...string) {
	h.Handle(func(_ context.Context, cmd transport.Command) error {
		_, err := io.WriteString(cmd.Stdout, stdout)
		return err
	}, prefix...)
}

// HandleFile makes f called before a file is read or written, that is with op "read" or
// "write"; an error of it, such as Exit makes, is the outcome.
func (h *Host) HandleFile(f func(op, name string) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.onFile = f
}

// HandleDial makes f open the connections that Dial asks for. Without one, every
// connection is refused.
func (h *Host) HandleDial(f func(ctx context.Context, network, addr string) (net.Conn, error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dial = f
}

// SetFile puts a file on the host.
func (h *Host) SetFile(name string, f File) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.files[name] = f
}

// RemoveFile takes a file away.
func (h *Host) RemoveFile(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.files, name)
}

// File returns a file, and whether there is one.
func (h *Host) File(name string) (File, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f, ok := h.files[name]
	return f, ok
}

// Calls returns what was run so far, in the order in which it ended.
func (h *Host) Calls() []transport.Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

// Transcript returns the commands that were run so far, one a line, as they would show in a log.
func (h *Host) Transcript() string {
	var b strings.Builder
	for _, c := range h.Calls() {
		b.WriteString(c.Command)
		b.WriteByte('\n')
	}
	return b.String()
}

// String returns the name that New was given.
func (h *Host) String() string { return h.name }

// Close makes everything that runs, or is asked for afterwards, fail.
func (h *Host) Close() error {
	h.once.Do(func() {
		close(h.closed)
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, conn := range h.conns {
			_ = conn.Close()
		}
	})
	return nil
}

// Dial opens a connection by what HandleDial was given.
func (h *Host) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if err := h.usable(ctx); err != nil {
		return nil, fmt.Errorf("%s: dial %s: %w", h.name, addr, err)
	}
	h.mu.Lock()
	dial := h.dial
	h.mu.Unlock()
	if dial == nil {
		return nil, fmt.Errorf("%s: dial %s: nothing listens", h.name, addr)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go h.endWith(ctx, cancel)
	conn, err := dial(ctx, network, addr)
	if err != nil {
		return nil, fmt.Errorf("%s: dial %s: %w", h.name, addr, errors.Join(err, h.usable(ctx)))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns = append(h.conns, conn)
	return conn, nil
}

// endWith ends a context when the host is closed.
func (h *Host) endWith(ctx context.Context, cancel context.CancelCauseFunc) {
	select {
	case <-h.closed:
		cancel(net.ErrClosed)
	case <-ctx.Done():
	}
}

// usable returns why nothing can be done.
func (h *Host) usable(ctx context.Context) error {
	select {
	case <-h.closed:
		return net.ErrClosed
	default:
		return ended(ctx)
	}
}

// ended returns why a context has ended, and that it has; nil if it has not.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != ctx.Err() { // the very same, not one that wraps it
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
}
