package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// A Client is a Conn over SSH. Make one with [Dial] or [Dialer.Dial].
type Client struct {
	hop      hop
	wire     *watched
	ssh      *ssh.Client
	sessions *budget
	sudo     sudoAuth
	trace    func(Call)
	released func() // gives back what the connection was made through

	dead   chan struct{} // closed when the SSH connection has ended
	mu     sync.Mutex
	cause  error // why it ended
	closed bool  // by Close
}

var _ Conn = (*Client)(nil)

// newClient takes over an authenticated connection.
func newClient(h hop, wire *watched, conn *ssh.Client, maxSessions int, trace func(Call), released func()) *Client {
	c := &Client{
		hop: h, wire: wire, ssh: conn, sessions: newBudget(maxSessions), sudo: newSudoAuth(),
		trace: trace, released: released, dead: make(chan struct{}),
	}
	go func() {
		err := conn.Wait()
		c.end(err, false)
		close(c.dead)
		released()
	}()
	if h.KeepAlive > 0 {
		go c.keepAlive(h.KeepAlive)
	}
	return c
}

// String returns user@address:port.
func (c *Client) String() string { return c.hop.name }

// Close ends the connection and everything that runs over it. It does not wait for the host.
func (c *Client) Close() error {
	c.end(net.ErrClosed, true)
	select {
	case <-c.dead:
	case <-time.After(settle):
	}
	return nil
}

// settle is how long ending goroutines are waited for where that is only a courtesy.
const settle = 200 * time.Millisecond

// end cuts the connection, for the given reason unless there was one before.
func (c *Client) end(cause error, closed bool) {
	c.mu.Lock()
	if c.cause == nil {
		c.cause, c.closed = cause, closed
	}
	c.mu.Unlock()
	_ = c.wire.Close() // not the SSH connection, which would wait for its turn to write
}

// ended returns the error of whatever needs the connection after it has ended.
func (c *Client) ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return fmt.Errorf("%s: %w", c, net.ErrClosed)
	}
	return fmt.Errorf("%s: %w: %w", c, ErrConnectionLost, c.cause)
}

// over reports whether the connection has ended. An operation that failed on it may know
// a moment earlier.
func (c *Client) over(patience time.Duration) bool {
	select {
	case <-c.dead:
		return true
	case <-time.After(patience):
		return false
	}
}

// keepAlive probes a peer that says nothing, and ends the connection if it goes on saying
// nothing. The probe waits in a goroutine of its own, because a stalled link keeps it
// waiting.
func (c *Client) keepAlive(every time.Duration) {
	var probing atomic.Bool
	var heard int64 // when something arrived that was taken note of
	misses := 0
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-c.dead:
			return
		case <-timer.C:
		}
		if last := c.wire.last.Load(); last != heard {
			heard, misses = last, 0
		}
		if silent := c.wire.silence(); silent < every {
			timer.Reset(every - silent)
			continue
		}
		if misses++; misses >= keepAliveMisses {
			c.end(fmt.Errorf("no answer for %v", c.wire.silence().Round(time.Millisecond)), false)
			return
		}
		if probing.CompareAndSwap(false, true) {
			go func() {
				_, _, _ = c.ssh.SendRequest("keepalive@openssh.com", true, nil) // any answer will do; the reader notes that one came
				probing.Store(false)
			}()
		}
		timer.Reset(every)
	}
}

// Dial opens a connection to addr as seen from the host. A refusal by the host is a *[net.OpError].
func (c *Client) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	fail := func(err error) error {
		return &net.OpError{Op: "dial through " + c.String() + " to", Net: network, Addr: address{network, addr}, Err: err}
	}
	switch network {
	case "tcp", "tcp4", "tcp6", "unix":
	default:
		return nil, fail(net.UnknownNetworkError(network))
	}
	if err := ctx.Err(); err != nil {
		return nil, fail(ctxErr(ctx))
	}
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result, 1)
	go func() {
		conn, err := c.ssh.Dial(network, addr)
		results <- result{conn, err}
	}()
	abandon := func() {
		go func() {
			if r := <-results; r.err == nil {
				_ = r.conn.Close()
			}
		}()
	}
	select {
	case r := <-results:
		if r.err == nil {
			return openTunnel(r.conn, address{network, c.String()}, address{network, addr}, func() {}), nil
		}
		if _, refused := errors.AsType[*ssh.OpenChannelError](r.err); !refused && c.over(settle) {
			return nil, fail(c.ended())
		}
		return nil, fail(r.err)
	case <-c.dead:
		abandon()
		return nil, fail(c.ended())
	case <-ctx.Done():
		abandon()
		return nil, fail(ctxErr(ctx))
	}
}
