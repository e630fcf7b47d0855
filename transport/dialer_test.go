package transport_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/mkesdk/mkesdk/transport"
	"github.com/mkesdk/mkesdk/transport/transporttest"
)

// One connection to a bastion serves all hosts behind it, dialed in parallel or one after
// the other.
func TestSharedBastion(t *testing.T) {
	var dials, most, now atomic.Int32
	front := &transporttest.Server{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}
	bastion := serve(t, front)
	p, err := transporttest.NewProxy(bastion.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	bastion.Address = p.Addr()
	host := &transporttest.Server{Authorize: func(string, ssh.PublicKey) bool {
		for n := now.Add(1); ; {
			if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		time.Sleep(20 * time.Millisecond) // the work that a server has with a key
		now.Add(-1)
		return true
	}}
	cfg := serve(t, host)
	host.AuthorizedKeys = nil
	noLeak(t, func() {
		d := &transport.Dialer{MaxPerBastion: 3}
		var wg sync.WaitGroup
		for range 12 {
			wg.Go(func() {
				b := bastion // a copy, as one has that reads a file
				cfg := cfg
				cfg.Bastion = &b
				c, err := d.Dial(t.Context(), cfg)
				if err != nil {
					t.Error(err)
					return
				}
				if out, err := transport.Output(t.Context(), c, transport.Command{Args: []string{"echo", "x"}}); err != nil || out != "x" {
					t.Errorf("Output = %q, %v", out, err)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := p.Accepted(); n != 1 {
			t.Errorf("%d connections to the bastion, want 1", n)
		}
		if n := most.Load(); n > 3 {
			t.Errorf("%d hosts were dialed at once, want 3 at most", n)
		}
		// A bastion that went away is dialed again.
		front.Disconnect()
		cfg.Bastion = &bastion
		deadline := time.Now().Add(10 * time.Second)
		for {
			c, err := d.Dial(t.Context(), cfg)
			if err == nil {
				_ = d.Close()
				if err := c.Run(t.Context(), transport.Command{Args: []string{"true"}}); !errors.Is(err, transport.ErrConnectionLost) {
					t.Errorf("after the Dialer is closed: %v", err)
				}
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("the bastion is not dialed again: %v", err)
			}
		}
		if _, err := d.Dial(t.Context(), cfg); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a closed Dialer: %v", err)
		}
		front.Disconnect()
		host.Disconnect()
		_ = p.Close()
		if err := front.Close(); err != nil {
			t.Error(err)
		}
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Hops have their own users and keys, and bastions that differ in them are not shared.
func TestHopsOfTheirOwn(t *testing.T) {
	var mu sync.Mutex
	users := make(map[string][]string)
	seen := func(hop string) func(string, ssh.PublicKey) bool {
		return func(user string, _ ssh.PublicKey) bool {
			mu.Lock()
			defer mu.Unlock()
			users[hop] = append(users[hop], user)
			return false
		}
	}
	bs := &transporttest.Server{Authorize: seen("bastion")}
	bastion := serve(t, bs)
	host := serve(t, &transporttest.Server{Authorize: seen("host")})
	bastion.User, host.User = "jump", "ops"
	host.Bastion = &bastion
	d := &transport.Dialer{}
	defer d.Close() // the end of the test
	if _, err := d.Dial(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	if bs.Connections() != 1 {
		t.Errorf("%d connections to the bastion", bs.Connections())
	}
	other := bastion
	other.User = "someone"
	host.Bastion = &other
	if _, err := d.Dial(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	if bs.Connections() != 2 {
		t.Errorf("%d connections to the bastion for two users, want 2", bs.Connections())
	}
	// The host's key is none for the bastion.
	wrong := bastion
	wrong.Auth = transport.Auth{Signers: []ssh.Signer{newKey(t)}}
	host.Bastion = &wrong
	if _, err := d.Dial(t.Context(), host); !errors.Is(err, transport.ErrAuth) || !strings.Contains(err.Error(), "jump@") {
		t.Errorf("a wrong key for the bastion: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(users["bastion"], " ") + "; " + strings.Join(users["host"], " "); got != "jump; " {
		t.Errorf("users whose keys were strange: %s", got)
	}
}

// A server that has too many to authenticate closes connections without a word. They are
// tried again.
func TestMaxStartups(t *testing.T) {
	s := &transporttest.Server{MaxStartups: 2}
	cfg := serve(t, s)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := logsIn(t, cfg); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestMaxStartupsOpenSSH(t *testing.T) {
	cfg := openSSH(t, "MaxStartups 2:100:2", "LoginGraceTime 20")
	bastion := openSSH(t)
	for _, via := range []*transport.Config{nil, &bastion} {
		cfg.Bastion = via
		d := &transport.Dialer{}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				c, err := d.Dial(t.Context(), cfg)
				if err != nil {
					t.Error(err)
					return
				}
				_ = c.Close()
			})
		}
		wg.Wait()
		_ = d.Close()
	}
}

// One who gives up waiting for a bastion does not spoil it for the others, and the last
// one who does ends it.
func TestBastionWaiters(t *testing.T) {
	noLeak(t, func() {
		release := make(chan struct{})
		bs := &transporttest.Server{}
		bastion, host := serve(t, bs), serve(t, &transporttest.Server{})
		host.Bastion = &bastion
		d := &transport.Dialer{NetDial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			select {
			case <-release:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}}
		impatient, cancel := context.WithCancel(t.Context())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := d.Dial(impatient, host)
			first <- err
		}()
		go func() {
			_, err := d.Dial(t.Context(), host)
			second <- err
		}()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("the impatient one: %v", err)
		}
		close(release)
		if err := <-second; err != nil {
			t.Errorf("the patient one: %v", err)
		}
		_ = d.Close()
		bs.Disconnect()
	})
}

func TestConfigRefused(t *testing.T) {
	good := transport.Config{Address: "h1", User: "u", HostKeys: transport.InsecureIgnoreHostKey(), Auth: transport.Auth{KeyFile: "k"}}
	for what, change := range map[string]func(c *transport.Config){
		"no address":            func(c *transport.Config) { c.Address = "" },
		"HostKeys":              func(c *transport.Config) { c.HostKeys = nil },
		"no user":               func(c *transport.Config) { c.User = "" },
		"no key to log in with": func(c *transport.Config) { c.Auth = transport.Auth{} },
		"another port":          func(c *transport.Config) { c.Address, c.Port = "h1:22", 23 },
		"hops":                  func(c *transport.Config) { c.Bastion = c },
		"negative":              func(c *transport.Config) { c.DialTimeout = -1 },
		"no host's own":         func(c *transport.Config) { c.Address = "0.0.0.0" },
		"neither a host":        func(c *transport.Config) { c.Address = "a b" },
	} {
		cfg := good
		change(&cfg)
		if _, err := transport.Dial(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want %q", err, what)
		}
	}
	// Everything that is wrong is said at once, of the bastion as well.
	_, err := transport.Dial(t.Context(), transport.Config{Bastion: &transport.Config{Address: "b"}})
	for _, want := range []string{"no address", "HostKeys", "no user", "b: there is no user"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not say %q", err, want)
		}
	}
}

// Trace sees each command, and what came of it.
func TestTrace(t *testing.T) {
	var mu sync.Mutex
	var calls []transport.Call
	d := &transport.Dialer{Trace: func(c transport.Call) {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, c)
	}}
	cfg := serve(t, &transporttest.Server{})
	c, err := d.Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() // the end of the test
	_ = c.Run(t.Context(), transport.Command{
		Args: []string{"sh", "-c", "cat; echo 12345 >&2; exit 3", "pass"}, Secrets: []string{"pass"}, Stdin: strings.NewReader("1234567"),
		Effect: transport.EffectNone,
	})
	_ = c.Run(t.Context(), transport.Command{Args: []string{"true"}})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_ = c.Run(over, transport.Command{Args: []string{"true"}})
	if len(calls) != 3 {
		t.Fatalf("%d calls, want 3", len(calls))
	}
	a := calls[0]
	if a.Status != 3 || a.In != 7 || a.Out != 13 || a.Effect != transport.EffectNone || a.Host != c.String() || a.Err == nil || a.Duration <= 0 ||
		strings.Contains(a.Command, "pass") {
		t.Errorf("the first call: %+v", a)
	}
	if b := calls[1]; b.Status != 0 || b.Err != nil || b.Effect != transport.EffectChange {
		t.Errorf("the second call: %+v", b)
	}
	if b := calls[2]; b.Status != -1 || !errors.Is(b.Err, context.Canceled) {
		t.Errorf("the third call: %+v", b)
	}
}
