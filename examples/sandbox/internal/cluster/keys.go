package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// hostKeys makes a host's private keys, by the names that sshd knows them under, and the public
// ones.
func hostKeys(host string) (map[string][]byte, []ssh.PublicKey, error) {
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("host key: %w", err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("host key: %w", err)
	}
	files := map[string][]byte{}
	var public []ssh.PublicKey
	for name, key := range map[string]crypto.Signer{"ssh_host_ed25519_key": ed, "ssh_host_ecdsa_key": ec} {
		text, pub, err := marshalKey(key, "root@"+host)
		if err != nil {
			return nil, nil, err
		}
		files[name] = text
		public = append(public, pub)
	}
	return files, public, nil
}

func marshalKey(key crypto.Signer, comment string) ([]byte, ssh.PublicKey, error) {
	// The key's own type is asked for, not an interface that it meets.
	var private crypto.PrivateKey = key
	block, err := ssh.MarshalPrivateKey(private, comment)
	if err != nil {
		return nil, nil, fmt.Errorf("private key: %w", err)
	}
	pub, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		return nil, nil, fmt.Errorf("public key: %w", err)
	}
	return pem.EncodeToMemory(block), pub, nil
}

// operatorKey makes the key by which the operator gets in everywhere, writes it into dir, and
// returns its line for authorized_keys.
func operatorKey(dir string) (string, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", fmt.Errorf("operator key: %w", err)
	}
	private, pub, err := marshalKey(key, "operator@sandbox")
	if err != nil {
		return "", err
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(pub))) + " operator@sandbox\n"
	if err := writeFile(filepath.Join(dir, KeyFile), private, 0o600); err != nil {
		return "", err
	}
	if err := writeFile(filepath.Join(dir, KeyFile+".pub"), []byte(line), 0o644); err != nil {
		return "", err
	}
	return line, nil
}

// knownHosts is the text of a known_hosts file.
func knownHosts(keys map[string][]ssh.PublicKey, order []string) string {
	var out strings.Builder
	for _, addr := range order {
		for _, k := range keys[addr] {
			fmt.Fprintln(&out, knownhosts.Line([]string{addr}, k))
		}
	}
	return out.String()
}

// writeKnownHosts writes the host keys into the state directory, and to where mkectl looks in the
// home directory there.
func writeKnownHosts(dir string, known []byte) error {
	mkectl := filepath.Join(dir, HomeDir, ".mke")
	if err := os.MkdirAll(mkectl, 0o700); err != nil {
		return err
	}
	for _, d := range []string{dir, mkectl} {
		if err := writeFile(filepath.Join(d, KnownHostsFile), known, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// writeFile replaces a file of the state directory; a reader sees the old text or the new.
func writeFile(path string, data []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := f.Chmod(mode); err != nil {
		_ = f.Close()
		return err
	}
	if _, err := f.Write(data); err != nil {
		_ = f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
