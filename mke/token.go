package mke

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"

	"github.com/mkesdk/mkesdk/transport"
)

// withToken gives the host a join token of its own, in file, while do makes it join, waits
// until the host has its own kubeconfig, and takes the token back on every way out.
func (r *run) withToken(ctx context.Context, t *target, file string, do func() error) (err error) {
	token, id, err := r.createToken(ctx)
	if err != nil {
		return fmt.Errorf("making a join token on the helper %s: %w", r.helperRef, err)
	}
	keep := false // the host still needs its token
	defer func() { err = errors.Join(err, r.takeBack(ctx, t, id, file, keep)) }()
	if err := t.sudo(ctx, "mkdir", "-p", "-m", "0755", path.Dir(file)); err != nil {
		return err
	}
	if err := t.write(ctx, file, token+"\n", 0o600); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	conf := path.Join(t.dataDir(), "kubelet.conf")
	err = r.pollOn(ctx, t, r.opts.Timeouts.Readiness, joinGrace, conf, func(ctx context.Context) (bool, string, error) {
		ok, err := t.holds(ctx, "test", "-s", conf)
		if err != nil {
			return false, "the host does not answer: " + err.Error(), nil
		}
		return ok, "the host has not got its own kubeconfig", nil
	})
	keep = err != nil // the service runs and goes on trying; only its own kubeconfig makes the token needless
	return err
}

// createToken makes a join token on the helper. The token is a secret: it goes
// from the helper's standard output to the host's standard input.
func (r *run) createToken(ctx context.Context) (token, id string, err error) {
	token, err = transport.Output(ctx, r.helper, transport.Command{
		Args: []string{k0sPath(r.helperFacts), "token", "create", "--role", "worker", "--expiry", tokenExpiry},
		Sudo: true,
	})
	if err != nil {
		return "", "", err
	}
	id, err = tokenID(token)
	return token, id, err
}

// invalidate makes a join token good for nothing.
func (r *run) invalidate(ctx context.Context, id string) error {
	return r.helper.Run(ctx, transport.Command{Args: []string{k0sPath(r.helperFacts), "token", "invalidate", id}, Sudo: true})
}

// tokenIn finds the bootstrap token in a kubeconfig: its id is public, the rest of it is not.
var tokenIn = regexp.MustCompile(`(?m)^\s*token:\s*"?([a-z0-9]{6})\.[a-z0-9]{16}"?\s*$`)

// maxToken bounds what a token may unpack to. A real one is under 10 KB.
const maxToken = 1 << 20

// tokenID returns the public part of a join token: base64 of a gzip'd
// kubeconfig. Its errors never hold any of it.
func tokenID(token string) (string, error) {
	packed, err := base64.StdEncoding.DecodeString(token)
	if err != nil {
		return "", errors.New("k0s token create did not print a join token: not base64")
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", errors.New("k0s token create did not print a join token: not gzip")
	}
	kubeconfig, err := io.ReadAll(io.LimitReader(z, maxToken))
	if err != nil {
		return "", errors.New("k0s token create printed a damaged join token")
	}
	m := tokenIn.FindSubmatch(kubeconfig)
	if m == nil {
		return "", errors.New("k0s token create printed a kubeconfig without a bootstrap token")
	}
	return string(m[1]), nil
}

// takeBack invalidates a join token and deletes its file, even if ctx is done.
// If keep is set the file stays, as a restart of the service would need it, and so does the token, until it expires.
func (r *run) takeBack(ctx context.Context, t *target, id, file string, keep bool) error {
	if keep {
		r.left("%s: the join token %s stays in %s, as the host has not joined yet; it expires %s after it was made, and the next run takes it away", t.ref(), id, file, tokenExpiry)
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	var errs []error
	if err := t.sudo(ctx, "rm", "-f", file); err != nil {
		r.left("%s: delete the join token there: rm -f %s", t.ref(), file)
		errs = append(errs, fmt.Errorf("deleting the join token: %w", err))
	} else {
		t.tokenGone = true
	}
	if err := r.invalidate(ctx, id); err != nil {
		r.left("the join token %s is valid for up to %s: on %s, run: k0s token invalidate %s", id, tokenExpiry, r.helperRef, id)
		errs = append(errs, fmt.Errorf("invalidating the join token %s: %w", id, err))
	}
	return errors.Join(errs...)
}
