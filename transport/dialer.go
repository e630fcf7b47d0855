package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
)

// A Dialer makes connections that share what they can: one connection to each bastion,
// and each passphrase asked for once. The zero Dialer is ready for use. Its fields are
// not to be changed once it is in use.
type Dialer struct {
	// NetDial replaces the connection to the first hop; a net.Dialer's if nil. It is to
	// return when ctx ends.
	NetDial func(ctx context.Context, network, addr string) (net.Conn, error)

	MaxPerBastion int // hosts behind one bastion that are dialed at the same time; 8 if zero
	MaxSessions   int // commands that run at the same time on one connection; 8 if zero

	// Trace is called after each command with what came of it. It is called from many
	// goroutines, and delays the command's caller.
	Trace func(Call)

	mu       sync.Mutex
	closed   bool
	keys     keyring
	bastions []*bastion
}

// Dial connects to the host that cfg names, through its bastions if it has some. A host
// that is refused says why: the error matches [ErrAuth] or [ErrHostKey]; after any other
// error it may be tried again.
func (d *Dialer) Dial(ctx context.Context, cfg Config) (*Client, error) {
	if d.MaxPerBastion < 0 || d.MaxSessions < 0 {
		return nil, fmt.Errorf("dial: MaxPerBastion %d and MaxSessions %d are not to be negative", d.MaxPerBastion, d.MaxSessions)
	}
	if err := cfg.checkAll(); err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("dial %s: %w", cfg.Address, ctxErr(ctx))
	}
	return d.dial(ctx, cfg)
}

// dial connects to a host whose configuration was checked.
func (d *Dialer) dial(ctx context.Context, cfg Config) (*Client, error) {
	h, err := cfg.check()
	if err != nil {
		return nil, err
	}
	dial := dialFunc(d.NetDial)
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	done := func() {}
	if cfg.Bastion != nil {
		b, err := d.through(ctx, *cfg.Bastion)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.name, err)
		}
		done = func() { d.leave(b) }
		if !b.slots.acquire(ctx, b.client.dead) {
			done()
			if ctx.Err() != nil {
				return nil, fmt.Errorf("%s: wait for others that are dialed through %s: %w", h.name, b.client, ctxErr(ctx))
			}
			return nil, fmt.Errorf("%s: %w", h.name, b.client.ended())
		}
		defer b.slots.release()
		dial = b.client.Dial
	}
	wire, conn, err := connect(ctx, h, dial, &d.keys)
	if err != nil {
		done()
		return nil, err
	}
	sessions := d.MaxSessions
	if sessions == 0 {
		sessions = DefaultMaxSessions
	}
	return newClient(h, wire, conn, sessions, d.Trace, done), nil
}

// Close ends the connections to bastions, and so those that were made through them. The
// others belong to whoever dialed them.
func (d *Dialer) Close() error {
	d.mu.Lock()
	d.closed = true
	bastions := d.bastions
	d.bastions = nil
	d.mu.Unlock()
	var errs []error
	for _, b := range bastions {
		b.cancel()
		<-b.ready
		if b.client != nil {
			errs = append(errs, b.client.Close())
		}
	}
	return errors.Join(errs...)
}

// Dial connects to the host that cfg names, with a bastion of its own if it needs one.
// Use a [Dialer] for several hosts.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	d := &Dialer{}
	c, err := d.Dial(ctx, cfg)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if cfg.Bastion != nil {
		go func() {
			<-c.dead
			_ = d.Close()
		}()
	}
	return c, nil
}
