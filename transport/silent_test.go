package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/transport"
	"github.com/mkesdk/mkesdk/transport/transporttest"
)

const (
	patience = 300 * time.Millisecond // the context of what is cut off
	grace    = 500 * time.Millisecond // how much later it may return
)

// cutOff checks that f returns soon after its context, and what it returns.
func cutOff(t *testing.T, f func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	start := time.Now()
	err := f(ctx)
	if took := time.Since(start); took > patience+grace {
		t.Errorf("returned after %v, with a context of %v", took, patience)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want it to match context.DeadlineExceeded", err)
	}
	if _, ran := errors.AsType[*transport.ExitError](err); ran {
		t.Errorf("got an ExitError of what was cut off: %v", err)
	}
}

// noLeak checks that f leaves no goroutine of ours or of the SSH library behind.
func noLeak(t *testing.T, f func()) {
	t.Helper()
	f()
	deadline := time.Now().Add(10 * time.Second)
	for {
		buf := make([]byte, 4<<20)
		stacks := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
		var left []string
		for _, s := range stacks[1:] {
			if strings.Contains(s, "mkesdk/transport.") || strings.Contains(s, "x/crypto/ssh.") {
				left = append(left, s)
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines are left:\n%s", len(left), strings.Join(left, "\n\n"))
		}
		time.Sleep(5 * time.Millisecond) // for the next look
	}
}

func TestSilentPeers(t *testing.T) {
	run := func(c *transport.Client) func(context.Context) error {
		return func(ctx context.Context) error { return c.Run(ctx, transport.Command{Args: []string{"sleep", "60"}}) }
	}
	for _, bastion := range []bool{false, true} {
		for name, silence := range map[string]transporttest.Silence{
			"accept": transporttest.SilentAccept, "auth": transporttest.SilentAuth, "open": transporttest.SilentOpen,
			"exec": transporttest.SilentExec, "run": transporttest.SilentRun, "dial": transporttest.SilentDial,
		} {
			t.Run(fmt.Sprintf("%s bastion %v", name, bastion), func(t *testing.T) {
				noLeak(t, func() {
					t.Run("", func(t *testing.T) {
						cfg := serve(t, &transporttest.Server{Silence: silence})
						if bastion {
							b := serve(t, &transporttest.Server{})
							cfg.Bastion = &b
						}
						switch silence {
						case transporttest.SilentAccept, transporttest.SilentAuth:
							cutOff(t, func(ctx context.Context) error {
								_, err := transport.Dial(ctx, cfg)
								return err
							})
						case transporttest.SilentDial:
							c := dial(t, cfg)
							cutOff(t, func(ctx context.Context) error {
								_, err := c.Dial(ctx, "tcp", "127.0.0.1:1")
								return err
							})
							behind := serve(t, &transporttest.Server{})
							behind.Bastion = &cfg
							cutOff(t, func(ctx context.Context) error {
								_, err := transport.Dial(ctx, behind)
								return err
							})
						default:
							cutOff(t, run(dial(t, cfg)))
						}
					})
				})
			})
		}
	}
}

// A hop that does not answer is given up after its own time, and says what it was waited for.
func TestDialTimeout(t *testing.T) {
	for silence, want := range map[transporttest.Silence]string{
		transporttest.SilentAccept: "wait for its SSH version: no answer within 100ms",
		transporttest.SilentAuth:   "authenticate: no answer within 100ms",
	} {
		cfg := serve(t, &transporttest.Server{Silence: silence})
		cfg.DialTimeout = 100 * time.Millisecond
		_, err := transport.Dial(t.Context(), cfg)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// stalled connects through a proxy, direct or as a bastion, and stalls it.
func stalled(t *testing.T, bastion bool, keepAlive time.Duration) (*transport.Client, *transporttest.Proxy) {
	t.Helper()
	cfg := serve(t, &transporttest.Server{})
	first := &cfg
	if bastion {
		b := serve(t, &transporttest.Server{})
		cfg.Bastion, first = &b, &b
	}
	p, err := transporttest.NewProxy(first.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	first.Address = p.Addr()
	cfg.KeepAlive = keepAlive
	if bastion {
		first.KeepAlive = keepAlive
	}
	return dial(t, cfg), p
}

// A link that is dead is found by keep-alive probes, and everything on it ends.
func TestKeepAlive(t *testing.T) {
	const every = 100 * time.Millisecond
	for _, bastion := range []bool{false, true} {
		t.Run(fmt.Sprintf("bastion %v", bastion), func(t *testing.T) {
			noLeak(t, func() {
				t.Run("", func(t *testing.T) {
					c, p := stalled(t, bastion, every)
					r, w := io.Pipe()
					done := make(chan error, 1)
					go func() {
						done <- c.Run(t.Context(), transport.Command{Args: []string{"sh", "-c", "sleep 0.6; echo; exec sleep 60"}, Stdout: w})
					}()
					if _, err := r.Read(make([]byte, 1)); err != nil { // a link that is idle for longer, but answers, is left alone
						t.Fatal(err)
					}
					start := time.Now()
					p.Stall()
					err := <-done
					if took := time.Since(start); took > 3*every+time.Second {
						t.Errorf("it took %v to notice, with a probe each %v", took, every)
					}
					if !errors.Is(err, transport.ErrConnectionLost) {
						t.Errorf("got %v, want ErrConnectionLost", err)
					}
					if err := c.Run(t.Context(), transport.Command{Args: []string{"true"}}); !errors.Is(err, transport.ErrConnectionLost) {
						t.Errorf("the next command: %v, want ErrConnectionLost", err)
					}
					if _, err := c.Dial(t.Context(), "tcp", "127.0.0.1:1"); !errors.Is(err, transport.ErrConnectionLost) {
						t.Errorf("Dial: %v, want ErrConnectionLost", err)
					}
				})
			})
		})
	}
}

// While nobody has noticed yet that a link is stalled, contexts and Close hold.
func TestStalledLink(t *testing.T) {
	for _, bastion := range []bool{false, true} {
		noLeak(t, func() {
			t.Run(fmt.Sprintf("bastion %v", bastion), func(t *testing.T) {
				c, p := stalled(t, bastion, -1)
				p.Stall()
				cutOff(t, func(ctx context.Context) error { return c.Run(ctx, transport.Command{Args: []string{"true"}}) })
				cutOff(t, func(ctx context.Context) error {
					_, err := c.Dial(ctx, "tcp", "127.0.0.1:1")
					return err
				})
				// Enough to fill every buffer on the way, so that writing is what stalls.
				cutOff(t, func(ctx context.Context) error {
					return c.Run(ctx, transport.Command{Args: []string{"cat"}, Stdin: zeros{}})
				})
				start := time.Now()
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				if took := time.Since(start); took > grace {
					t.Errorf("Close took %v", took)
				}
			})
		})
	}
}

// zeros has no end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// A writer that does not take anything holds nobody up for longer than its context.
func TestStuckWriter(t *testing.T) {
	d := &transport.Dialer{Trace: func(transport.Call) {}}
	c, err := d.Dial(t.Context(), serve(t, &transporttest.Server{}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() // the end of the test
	r, w := io.Pipe()
	defer r.Close() // a pipe
	cutOff(t, func(ctx context.Context) error {
		return c.Run(ctx, transport.Command{Args: []string{"cat"}, Stdin: zeros{}, Stdout: w})
	})
	if err := c.Run(t.Context(), transport.Command{Args: []string{"true"}}); err != nil {
		t.Errorf("the next command: %v", err)
	}
}

// The server goes away in the middle of a command.
func TestServerDies(t *testing.T) {
	s := &transporttest.Server{}
	c := dial(t, serve(t, s))
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- c.Run(t.Context(), transport.Command{Args: []string{"sh", "-c", "echo; exec sleep 60"}, Stdout: w})
	}()
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	s.Disconnect()
	if err := <-done; !errors.Is(err, transport.ErrConnectionLost) || errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want ErrConnectionLost", err)
	}
}
