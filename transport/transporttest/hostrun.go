package transporttest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mkesdk/mkesdk/transport"
	"github.com/mkesdk/mkesdk/transport/internal/script"
)

// Run answers cmd with a handler.
func (h *Host) Run(ctx context.Context, cmd transport.Command) error {
	call := transport.Call{Host: h.name, Command: cmd.String(), Effect: cmd.Effect, Start: time.Now(), Status: -1}
	in, out := &counter{r: cmd.Stdin}, &counter{w: cmd.Stdout}
	tail := &counter{w: cmd.Stderr, keep: true}
	call.Err = h.run(ctx, cmd, in, out, tail)
	if exit, ok := errors.AsType[*transport.ExitError](call.Err); ok {
		call.Status = exit.Status
	} else if call.Err == nil {
		call.Status = 0
	}
	call.Duration = time.Since(call.Start)
	call.In, call.Out = in.n.Load(), out.n.Load()+tail.n.Load()
	h.mu.Lock()
	h.calls = append(h.calls, call)
	h.mu.Unlock()
	return call.Err
}

func (h *Host) run(ctx context.Context, cmd transport.Command, in, out, tail *counter) error {
	wrap := func(err error) error { return fmt.Errorf("%s: %s: %w", h.name, cmd, err) }
	if len(cmd.Args) == 0 || cmd.Args[0] == "" {
		return wrap(errors.New("the command names no program"))
	}
	if slices.ContainsFunc(cmd.Args, func(a string) bool { return strings.ContainsRune(a, 0) }) {
		return wrap(errors.New("an argument has a NUL byte"))
	}
	if err := h.usable(ctx); err != nil {
		return wrap(err)
	}
	f := h.find(cmd.Args)
	if f == nil {
		h.t.Errorf("%s: no handler for the command: %s", h.name, cmd)
		return wrap(errors.New("transporttest: no handler"))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go h.endWith(ctx, cancel)
	for _, c := range []*counter{in, out, tail} {
		c.broke = cancel
	}
	shown := cmd
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, tail
	done := make(chan error, 1)
	go func() { done <- f(ctx, cmd) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
	}
	for _, c := range []*counter{in, out, tail} {
		c.detach()
	}
	if bad := errors.Join(in.failed(), out.failed(), tail.failed()); bad != nil {
		return wrap(bad)
	}
	if err := h.usable(ctx); err != nil {
		return wrap(err)
	}
	if status, ok := err.(exitStatus); ok && status != 0 { // what Exit makes, and nothing that wraps it
		return exitError(h.name, shown, int(status), tail.text())
	}
	if exit, ok := err.(*transport.ExitError); ok { // a handler that wants a signal
		e := *exitError(h.name, shown, exit.Status, exit.Stderr)
		e.Signal = exit.Signal
		return &e
	}
	if err != nil && !errors.Is(err, exitStatus(0)) {
		return wrap(err)
	}
	return nil
}

// exitError makes the error of a command, its standard error masked as a real connection does.
func exitError(host string, cmd transport.Command, status int, stderr string) *transport.ExitError {
	for _, s := range cmd.Secrets {
		if s != "" {
			stderr = strings.ReplaceAll(stderr, s, "******")
		}
	}
	return &transport.ExitError{Host: host, Command: cmd.String(), Status: status, Stderr: stderr}
}

// find returns the handler for a command.
func (h *Host) find(args []string) Handler {
	h.mu.Lock()
	defer h.mu.Unlock()
	var best *handler
	if f := h.fileHandler(args); f != nil {
		return f
	}
	for i := range h.handlers {
		p := h.handlers[i].prefix
		if len(p) <= len(args) && slices.Equal(p, args[:len(p)]) && (best == nil || len(p) >= len(best.prefix)) {
			best = &h.handlers[i]
		}
	}
	if best != nil {
		return best.f
	}
	return nil
}

// fileHandler returns the handler for a command of ReadFile or WriteFile.
func (h *Host) fileHandler(args []string) Handler {
	if len(args) < 5 || args[1] != "-c" {
		return nil
	}
	var f Handler
	op := "read"
	switch args[2] {
	case script.Read:
		f = h.read
	case script.Write:
		op, f = "write", h.write
	default:
		return nil
	}
	if h.onFile == nil {
		return f
	}
	onFile := h.onFile
	return func(ctx context.Context, cmd transport.Command) error {
		if err := onFile(op, args[4]); err != nil {
			return err
		}
		return f(ctx, cmd)
	}
}

// read and write do what the scripts of their names do.
func (h *Host) read(_ context.Context, cmd transport.Command) error {
	name := cmd.Args[4]
	f, ok := h.File(name)
	if !ok {
		_, _ = fmt.Fprintf(cmd.Stderr, "%s: no such file\n", name)
		return Exit(script.ExitNotExist)
	}
	_, err := io.WriteString(cmd.Stdout, "+"+f.Data)
	return err
}

func (h *Host) write(_ context.Context, cmd transport.Command) error {
	name, mode, owner, token := cmd.Args[4], cmd.Args[5], cmd.Args[6], cmd.Args[7]
	data, err := io.ReadAll(cmd.Stdin)
	if err != nil {
		return err
	}
	at := len(data) - script.TokenSize - script.DigestSize
	if at < 0 || !bytes.HasPrefix(data[at:], []byte(token)) {
		_, _ = io.WriteString(cmd.Stderr, "the content ended early\n")
		return Exit(script.ExitCut)
	}
	sum := sha256.Sum256(data[:at])
	if want := string(data[at+script.TokenSize:]); want != script.NoDigest && want != hex.EncodeToString(sum[:]) {
		_, _ = fmt.Fprintf(cmd.Stderr, "SHA-256 is %x, want %s\n", sum, want)
		return Exit(script.ExitDigest)
	}
	h.SetFile(name, File{Data: string(data[:at]), Mode: mode, Owner: owner})
	return nil
}

// A counter stands between a handler and the caller's streams, which are left alone once
// the command has ended.
type counter struct {
	mu   sync.Mutex
	r    io.Reader
	w    io.Writer
	over bool
	keep bool
	tail []byte
	err  error // of the caller's stream
	n    atomic.Int64

	broke func(error) // called when the caller's stream fails
}

func (c *counter) Read(p []byte) (int, error) {
	c.mu.Lock()
	r := c.r
	if c.over {
		r = nil
	}
	c.mu.Unlock()
	if r == nil {
		return 0, io.EOF
	}
	n, err := r.Read(p)
	c.n.Add(int64(n))
	if err != nil && !errors.Is(err, io.EOF) {
		c.mu.Lock()
		c.err = err
		c.mu.Unlock()
		c.broke(err)
	}
	return n, err
}

func (c *counter) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n.Add(int64(len(p)))
	if c.keep {
		c.tail = append(c.tail, p...)
		c.tail = c.tail[max(0, len(c.tail)-4<<10):]
	}
	if c.w == nil || c.over {
		return len(p), nil
	}
	n, err := c.w.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if err != nil {
		c.err = err
		c.broke(err)
	}
	return n, err
}

// detach waits a moment for a Write that runs, as a real connection does.
func (c *counter) detach() {
	for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if c.mu.TryLock() {
			c.over = true
			c.mu.Unlock()
			return
		}
	}
}

func (c *counter) failed() error {
	if !c.mu.TryLock() {
		return nil
	}
	defer c.mu.Unlock()
	return c.err
}

func (c *counter) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.tail)
}
