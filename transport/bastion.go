package transport

import (
	"context"
	"fmt"
	"net"
	"slices"

	"golang.org/x/crypto/ssh"
)

// A bastion is a connection that others are made through.
type bastion struct {
	cfg    Config
	slots  *budget
	cancel context.CancelFunc // of dialing it
	ready  chan struct{}      // closed when client or err is set
	client *Client
	err    error
	users  int // waiting for it or connected through it; guarded by Dialer.mu
}

// through returns the bastion for cfg, connected. The caller calls leave when it is done with it.
func (d *Dialer) through(ctx context.Context, cfg Config) (*bastion, error) {
	b, err := d.join(ctx, cfg)
	if err != nil {
		return nil, err
	}
	select {
	case <-b.ready:
	case <-ctx.Done():
		d.leave(b)
		return nil, fmt.Errorf("bastion %s: %w", cfg.Address, ctxErr(ctx))
	}
	if b.err != nil {
		d.leave(b)
		return nil, fmt.Errorf("bastion: %w", b.err)
	}
	return b, nil
}

// join finds the bastion for cfg or begins to dial it. Dialing goes on for as long as
// someone waits for it, even if the first who did has given up.
func (d *Dialer) join(ctx context.Context, cfg Config) (*bastion, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("dialer: %w", net.ErrClosed)
	}
	d.bastions = slices.DeleteFunc(d.bastions, (*bastion).useless)
	for _, b := range d.bastions {
		if sameConfig(&b.cfg, &cfg) {
			b.users++
			return b, nil
		}
	}
	limit := d.MaxPerBastion
	if limit == 0 {
		limit = DefaultMaxPerBastion
	}
	b := &bastion{cfg: cfg, slots: newBudget(limit), ready: make(chan struct{}), users: 1}
	ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	d.bastions = append(d.bastions, b)
	go func() {
		client, err := d.dial(ctx, cfg)
		d.mu.Lock()
		defer d.mu.Unlock()
		if err == nil && (b.users == 0 || d.closed) {
			_ = client.Close() // nobody wants it any more
			client, err = nil, fmt.Errorf("dialer: %w", net.ErrClosed)
		}
		b.client, b.err = client, err
		close(b.ready)
	}()
	return b, nil
}

// useless reports whether dialing b failed or its connection has ended.
func (b *bastion) useless() bool {
	select {
	case <-b.ready:
	default:
		return false
	}
	if b.err != nil {
		return true
	}
	select {
	case <-b.client.dead:
		return true
	default:
		return false
	}
}

// leave is called by whoever is done with b. A connection stays for the next host, until
// the Dialer is closed; a dial that nobody waits for does not.
func (d *Dialer) leave(b *bastion) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b.users--
	if b.users > 0 {
		return
	}
	select {
	case <-b.ready:
	default:
		b.cancel()
		d.bastions = slices.DeleteFunc(d.bastions, func(o *bastion) bool { return o == b })
	}
}

// sameConfig reports whether two hosts' bastions are one: the same place, user, keys and
// idea of its host key, all the way.
func sameConfig(a, b *Config) bool {
	if a == nil || b == nil {
		return a == b
	}
	ha, _ := a.check()
	hb, _ := b.check()
	return ha.name == hb.name && a.Auth.KeyFile == b.Auth.KeyFile && a.Auth.AgentSocket == b.Auth.AgentSocket &&
		slices.EqualFunc(a.Auth.Signers, b.Auth.Signers, func(x, y ssh.Signer) bool { return sameKey(x.PublicKey(), y.PublicKey()) }) &&
		sameHostKeys(a.HostKeys, b.HostKeys) && ha.DialTimeout == hb.DialTimeout && ha.KeepAlive == hb.KeepAlive &&
		sameConfig(a.Bastion, b.Bastion)
}

// sameHostKeys reports whether two policies are one. Nothing is known of those that
// others bring, so they are not shared.
func sameHostKeys(a, b HostKeys) bool {
	switch a := a.(type) {
	case *knownHosts:
		b, ok := b.(*knownHosts)
		return ok && slices.Equal(a.files, b.files)
	case *acceptNew:
		b, ok := b.(*acceptNew)
		return ok && a.file == b.file
	case *pinned:
		b, ok := b.(*pinned)
		return ok && slices.Equal(a.fingerprints, b.fingerprints)
	case *anyKey:
		_, ok := b.(*anyKey)
		return ok
	}
	return false
}
