package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// expandHome replaces a leading ~ by the caller's home directory.
func expandHome(path string) (string, error) {
	if path != "~" && !strings.HasPrefix(path, "~/") {
		if strings.HasPrefix(path, "~") {
			return "", fmt.Errorf("%s: only ~/ is understood, not another user's home", path)
		}
		return path, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return filepath.Join(home, path[1:]), nil
}

// A keyring remembers the encrypted keys that it opened, and those that it failed to:
// nobody wants to be asked again for every host.
type keyring struct {
	mu   sync.Mutex
	keys map[string]*opened
}

// opened is the outcome of one question for a passphrase.
type opened struct {
	done   chan struct{}
	signer ssh.Signer
	err    error
}

// signers returns the keys to offer, best first, and what to close when the handshake is over.
func (k *keyring) signers(ctx context.Context, a Auth) (signers []ssh.Signer, done func(), err error) {
	done = func() {}
	if a.KeyFile != "" {
		var s []ssh.Signer
		if s, done, err = k.fromFile(ctx, a); err != nil {
			return nil, nil, err
		}
		signers = s
	}
	signers = append(signers, a.Signers...)
	if a.KeyFile != "" || len(a.Signers) > 0 {
		return signers, done, nil
	}
	ag, err := dialAgent(ctx, a.AgentSocket)
	if err != nil {
		return nil, nil, err
	}
	if signers, err = ag.signers(ctx); err != nil {
		ag.close()
		return nil, nil, err
	}
	if len(signers) == 0 {
		ag.close()
		return nil, nil, fmt.Errorf("%w: the agent at %s holds no keys, and no key file is given", ErrAuth, a.AgentSocket)
	}
	return signers, ag.close, nil
}

// fromFile loads the key in a file, or finds it in the agent.
func (k *keyring) fromFile(ctx context.Context, a Auth) ([]ssh.Signer, func(), error) {
	path, err := expandHome(a.KeyFile)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: key file %w", ErrAuth, err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: key file: %w; want a private key that this user can read", ErrAuth, err)
	}
	done := func() {}
	signer, err := ssh.ParsePrivateKey(data)
	if err != nil {
		public, encrypted := publicOf(path, data, err)
		if public == nil && !encrypted {
			return nil, nil, fmt.Errorf("%w: key file %s holds no private key: %w", ErrAuth, path, err)
		}
		signer, done, err = k.locked(ctx, a, path, data, public, encrypted)
		if err != nil {
			return nil, nil, err
		}
	}
	signers := []ssh.Signer{signer}
	cert, err := certBeside(path, signer)
	if err != nil {
		done()
		return nil, nil, err
	}
	if cert != nil {
		signers = []ssh.Signer{cert, signer}
	}
	return signers, done, nil
}

// publicOf finds the public half of a key that could not be used as it is, and says
// whether the reason is that it is encrypted.
func publicOf(path string, data []byte, err error) (public ssh.PublicKey, encrypted bool) {
	if missing, ok := errors.AsType[*ssh.PassphraseMissingError](err); ok {
		encrypted, public = true, missing.PublicKey
		if public == nil {
			data, _ = os.ReadFile(path + ".pub") // without it the agent cannot be asked, the passphrase can
		}
	}
	if public == nil {
		public, _, _, _, _ = ssh.ParseAuthorizedKey(data)
	}
	return public, encrypted
}

// locked gets at a key that the file does not hold in the clear.
func (k *keyring) locked(ctx context.Context, a Auth, path string, data []byte, public ssh.PublicKey, encrypted bool) (ssh.Signer, func(), error) {
	if a.AgentSocket != "" && public != nil {
		ag, err := dialAgent(ctx, a.AgentSocket)
		if err == nil {
			var signer ssh.Signer
			if signer, err = ag.find(ctx, public); signer != nil {
				return signer, ag.close, nil
			}
			ag.close()
		}
		if err != nil && (!encrypted || a.Passphrase == nil) {
			return nil, nil, err
		}
	}
	switch {
	case !encrypted:
		return nil, nil, fmt.Errorf("%w: %s is a public key, and no agent holds its private half", ErrAuth, path)
	case a.Passphrase == nil:
		return nil, nil, fmt.Errorf("%w: key file %s is encrypted, no agent holds the key, and there is nobody to ask for the passphrase", ErrAuth, path)
	}
	signer, err := k.open(ctx, path, data, a.Passphrase)
	return signer, func() {}, err
}

// open decrypts a key, asking for its passphrase once however many hosts are dialed at
// the same time.
func (k *keyring) open(ctx context.Context, path string, data []byte, ask func(context.Context, string) ([]byte, error)) (ssh.Signer, error) {
	k.mu.Lock()
	o, ok := k.keys[path]
	if !ok {
		o = &opened{done: make(chan struct{})}
		if k.keys == nil {
			k.keys = make(map[string]*opened)
		}
		k.keys[path] = o
	}
	k.mu.Unlock()
	if ok {
		select {
		case <-o.done:
			return o.signer, o.err
		case <-ctx.Done():
			return nil, fmt.Errorf("key file %s: wait for its passphrase: %w", path, ctxErr(ctx))
		}
	}
	defer close(o.done)
	pass, err := ask(ctx, path)
	if err != nil {
		o.err = fmt.Errorf("%w: key file %s: ask for its passphrase: %w", ErrAuth, path, err)
		k.mu.Lock()
		delete(k.keys, path) // nothing was tried, so the next may ask again
		k.mu.Unlock()
		return nil, o.err
	}
	o.signer, err = ssh.ParsePrivateKeyWithPassphrase(data, pass)
	clear(pass)
	if err != nil {
		o.err = fmt.Errorf("%w: key file %s: the passphrase does not open it", ErrAuth, path)
	}
	return o.signer, o.err
}

// certBeside returns the signer for the certificate that lies beside a key, or nil if
// there is none.
func certBeside(path string, signer ssh.Signer) (ssh.Signer, error) {
	name := strings.TrimSuffix(path, ".pub") + "-cert.pub"
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey(data)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", name, err)
	}
	cert, ok := public.(*ssh.Certificate)
	if !ok {
		return nil, fmt.Errorf("certificate %s: it is a plain public key", name)
	}
	if !bytes.Equal(cert.Key.Marshal(), signer.PublicKey().Marshal()) {
		return nil, fmt.Errorf("certificate %s: it is for another key than the one in %s", name, path)
	}
	return ssh.NewCertSigner(cert, signer)
}
