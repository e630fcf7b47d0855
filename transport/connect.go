package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	maxOffers = 6 // keys that OpenSSH lets one try before it disconnects
	dialTries = 6 // connections to a server that closes them before it has said a word
	dialPause = 100 * time.Millisecond
)

// A dialFunc connects to addr.
type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// connect makes one hop. A server that has too many connections waiting to authenticate
// (MaxStartups) closes some without a word; those are tried again.
func connect(ctx context.Context, h hop, dial dialFunc, keys *keyring) (*watched, *ssh.Client, error) {
	signers, done, err := keys.signers(ctx, h.Auth)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", h.name, err)
	}
	defer done()
	ctx, cancel := context.WithTimeoutCause(ctx, h.DialTimeout, &timeoutError{h.DialTimeout})
	defer cancel()
	for try := 1; ; try++ {
		a := &attempt{hop: h, signers: signers}
		wire, client, err := a.do(ctx, dial)
		if err == nil {
			return wire, client, nil
		}
		if !a.turnedAway || try == dialTries {
			return nil, nil, err
		}
		select {
		case <-time.After(dialPause << (try - 1)):
		case <-ctx.Done():
			return nil, nil, err
		}
	}
}

// A timeoutError says that a hop did not answer in time.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string        { return fmt.Sprintf("no answer within %v", e.after) }
func (e *timeoutError) Timeout() bool        { return true }
func (e *timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// An attempt is one try to connect to and authenticate with a host.
type attempt struct {
	hop        hop
	signers    []ssh.Signer
	stage      atomic.Pointer[string]
	wire       atomic.Pointer[watched]
	keyErr     error    // what HostKeys said
	verified   bool     // HostKeys was content
	offered    []string // fingerprints of the keys that were tried
	turnedAway bool     // the server closed the connection before it said anything
}

func (a *attempt) at(stage string) { a.stage.Store(&stage) }

// doing says what the attempt is or was about.
func (a *attempt) doing() string {
	if w := a.wire.Load(); w != nil && !w.greet.Load() {
		return "wait for its SSH version"
	}
	return *a.stage.Load()
}

func (a *attempt) do(ctx context.Context, dial dialFunc) (*watched, *ssh.Client, error) {
	a.at("connect")
	conn, err := dial(ctx, "tcp", a.hop.addr)
	if err != nil {
		if ctx.Err() != nil {
			err = ctxErr(ctx)
		}
		return nil, nil, fmt.Errorf("%s: connect: %w", a.hop.name, err)
	}
	wire := watch(conn)
	type result struct {
		client *ssh.Client
		err    error
	}
	results := make(chan result, 1)
	a.at("exchange keys")
	a.wire.Store(wire)
	go func() {
		conn, chans, reqs, err := ssh.NewClientConn(wire, a.hop.addr, a.config())
		if err != nil {
			results <- result{nil, err}
			return
		}
		results <- result{ssh.NewClient(conn, chans, reqs), nil}
	}()
	var r result
	select {
	case r = <-results:
	case <-ctx.Done():
		_ = wire.Close()
		return nil, nil, fmt.Errorf("%s: %s: %w", a.hop.name, a.doing(), ctxErr(ctx))
	}
	if r.err == nil {
		return wire, r.client, nil
	}
	_ = wire.Close()
	a.turnedAway = !wire.greet.Load() && gone(r.err)
	return nil, nil, a.explain(r.err)
}

// gone reports whether err says that the peer closed the connection.
func gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
}

func (a *attempt) config() *ssh.ClientConfig {
	return &ssh.ClientConfig{
		User:              a.hop.User,
		HostKeyAlgorithms: offer(a.hop.HostKeys.Algorithms(a.hop.addr)),
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			a.keyErr = a.hop.HostKeys.Check(a.hop.addr, key)
			a.verified = a.keyErr == nil
			if a.verified {
				a.at("authenticate")
			}
			return a.keyErr
		},
		AuthCallback: a.next,
	}
}

// next offers one key after the other, so that it is known which were tried.
func (a *attempt) next(auth *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
	tried := len(a.offered)
	switch {
	case len(auth.PartialSuccessMethods) > 0:
		return nil, a.refused("a key is not enough for it, it also wants " + strings.Join(auth.AllowedMethods, " or "))
	case !slices.Contains(auth.AllowedMethods, "publickey"):
		return nil, a.refused("it takes no keys, only " + strings.Join(auth.AllowedMethods, " or "))
	case tried == len(a.signers):
		return nil, a.refused("")
	case tried == maxOffers:
		return nil, a.refused(fmt.Sprintf("%d more were not tried, since servers disconnect; name a key file", len(a.signers)-tried))
	}
	signer := a.signers[tried]
	a.offered = append(a.offered, ssh.FingerprintSHA256(signer.PublicKey()))
	return ssh.PublicKeys(signer), nil
}

// refused is the error of a host that takes none of our keys.
func (a *attempt) refused(why string) error {
	s := fmt.Sprintf("user %s: the host refused all %d keys that were tried", a.hop.User, len(a.offered))
	switch len(a.offered) {
	case 0:
		s = fmt.Sprintf("user %s: no key was tried", a.hop.User)
	case 1:
		s = fmt.Sprintf("user %s: the host refused the key that was tried", a.hop.User)
	}
	if f := a.hop.Auth.KeyFile; f != "" && len(a.offered) > 0 {
		s += ", of " + f
	}
	if len(a.offered) > 0 {
		s += " (" + strings.Join(a.offered, ", ") + ")"
	}
	if why == "" && len(a.offered) > 0 {
		why = fmt.Sprintf("put a public half into authorized_keys of %s there, or use another key or user", a.hop.User)
	}
	if why != "" {
		s += "; " + why
	}
	return fmt.Errorf("%w: %s", ErrAuth, s)
}

// explain makes an error for people of one of the handshake.
func (a *attempt) explain(err error) error {
	stage := a.doing()
	switch {
	case a.keyErr != nil:
		err = a.keyErr
	case errors.Is(err, ErrAuth):
		for e := err; e != nil; e = errors.Unwrap(e) {
			if errors.Unwrap(e) == ErrAuth {
				err = e // what next said, without the words that the library puts in front
			}
		}
	case a.verified && !gone(err):
		err = a.refused(err.Error())
	}
	return fmt.Errorf("%s: %s: %w", a.hop.name, stage, err)
}
