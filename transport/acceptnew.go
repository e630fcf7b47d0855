package transport

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/crypto/ssh"
)

// acceptNew is a known_hosts file that grows.
type acceptNew struct {
	file string
	mu   sync.Mutex // one writer at a time
}

// AcceptNew is [KnownHosts] of one file, except that the key of a host that the file does
// not know is accepted and added to it. A key that differs from the known one is refused
// as ever. The file is made, mode 0600, if it is not there; its directory is, too. A line
// is added in one write, so that several programs may share the file.
func AcceptNew(file string) (HostKeys, error) {
	path, err := expandHome(file)
	if err != nil {
		return nil, fmt.Errorf("known hosts: %w", err)
	}
	a := &acceptNew{file: path}
	if _, err := a.load(); err != nil {
		return nil, err
	}
	return a, nil
}

// load reads the file as it is now: another program may have added to it.
func (a *acceptNew) load() (*knownHosts, error) {
	k := &knownHosts{}
	data, err := os.ReadFile(a.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("known hosts: %w", err)
	}
	k.read(a.file, data)
	return k, nil
}

// Algorithms returns what the file knows.
func (a *acceptNew) Algorithms(addr string) []string {
	k, err := a.load()
	if err != nil {
		return nil // Check says why
	}
	return k.Algorithms(addr)
}

// Check accepts a key that is known, or that belongs to a host that is not.
func (a *acceptNew) Check(addr string, key ssh.PublicKey) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	k, err := a.load()
	if err != nil {
		return err
	}
	err = k.Check(addr, key)
	unknown, ok := errors.AsType[*HostKeyError](err)
	if !ok || unknown.Revoked || len(unknown.Known) > 0 {
		return err
	}
	if cert, ok := key.(*ssh.Certificate); ok {
		key = cert.Key // the certificate will be renewed, the key will not
	}
	line := namesOf(addr)[0] + " " + key.Type() + " " + base64.StdEncoding.EncodeToString(key.Marshal()) + "\n"
	if err := a.add(line); err != nil {
		return fmt.Errorf("known hosts: remember %s: %w", addr, err)
	}
	return nil
}

// add appends one line.
func (a *acceptNew) add(line string) (err error) {
	if err := os.MkdirAll(filepath.Dir(a.file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(a.file, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if n := info.Size(); n > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, n-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			line = "\n" + line
		}
	}
	if _, err := f.WriteString(line); err != nil {
		return err
	}
	return f.Sync()
}
