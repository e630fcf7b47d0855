package control

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// The periods k0s's configuration has by default.
const (
	caLife   = 87600 * time.Hour
	certLife = 8760 * time.Hour
)

// authority is a certificate authority at hand.
type authority struct {
	cert    *x509.Certificate
	key     crypto.Signer
	certPEM []byte
}

// request says what a certificate is for. quick asks for an elliptic key where k0s has an RSA one:
// fifteen of those cost a start two seconds of work.
type request struct {
	cn, org string
	hosts   []string
	quick   bool
}

func newKey(quick bool) (crypto.Signer, []byte, error) {
	if quick {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, nil, err
		}
		der, err := x509.MarshalECPrivateKey(key)
		return key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), err
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, nil, err
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), nil
}

func newSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 159))
}

// ensureAuthority loads <base>.crt and <base>.key, or makes them. One that is there is kept,
// whatever it is: so does k0s, and a wrong etcd CA left by an earlier cluster breaks a join.
func ensureAuthority(base, cn string) (*authority, error) {
	certPEM, err := os.ReadFile(base + ".crt")
	keyPEM, kerr := os.ReadFile(base + ".key")
	if err == nil && kerr == nil {
		return parseAuthority(base, certPEM, keyPEM)
	}
	for _, e := range []error{err, kerr} {
		if e != nil && !errors.Is(e, fs.ErrNotExist) {
			return nil, e
		}
	}
	key, keyPEM, err := newKey(false)
	if err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	tmpl := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: cn},
		NotBefore: time.Now().Add(-5 * time.Minute), NotAfter: time.Now().Add(caLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := errors.Join(replaceFile(base+".key", keyPEM, 0o640, -1), replaceFile(base+".crt", certPEM, 0o644, -1)); err != nil {
		return nil, err
	}
	return parseAuthority(base, certPEM, keyPEM)
}

func parseAuthority(base string, certPEM, keyPEM []byte) (*authority, error) {
	c, _ := pem.Decode(certPEM)
	k, _ := pem.Decode(keyPEM)
	if c == nil || k == nil {
		return nil, fmt.Errorf("%s.crt and %s.key: no PEM block", base, base)
	}
	cert, err := x509.ParseCertificate(c.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s.crt: %w", base, err)
	}
	var key any
	for _, parse := range []func([]byte) (any, error){
		func(b []byte) (any, error) { return x509.ParsePKCS1PrivateKey(b) },
		func(b []byte) (any, error) { return x509.ParseECPrivateKey(b) },
		x509.ParsePKCS8PrivateKey,
	} {
		if key, err = parse(k.Bytes); err == nil {
			break
		}
	}
	signer, ok := key.(crypto.Signer)
	if err != nil || !ok {
		return nil, fmt.Errorf("%s.key: not a private key", base)
	}
	return &authority{cert: cert, key: signer, certPEM: certPEM}, nil
}

// issue makes a key and a certificate for it. k0s gives every certificate both the server's and
// the client's use.
func (a *authority) issue(r request) (certPEM, keyPEM []byte, err error) {
	key, keyPEM, err := newKey(r.quick)
	if err != nil {
		return nil, nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, nil, err
	}
	tmpl := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: r.cn, Organization: []string{r.org}},
		NotBefore: time.Now().Add(-5 * time.Minute), NotAfter: time.Now().Add(certLife),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, // as k0s, also where it means nothing
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	seen := map[string]bool{}
	for _, h := range r.hosts {
		if h == "" || seen[h] {
			continue
		}
		seen[h] = true
		if ip := net.ParseIP(h); ip != nil {
			tmpl.IPAddresses = append(tmpl.IPAddresses, ip)
		} else {
			tmpl.DNSNames = append(tmpl.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate %s: %w", r.cn, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyPEM, nil
}

// ensureKeyPair makes <base>.key and <base>.pub unless both are there. Like k0s it gives the key to
// its owner only when it finds it at a later start.
func ensureKeyPair(base string, owner int) error {
	if exists(base+".key") && exists(base+".pub") {
		return chown(base+".key", owner)
	}
	key, keyPEM, err := newKey(false)
	if err != nil {
		return err
	}
	pub, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	return errors.Join(
		replaceFile(base+".key", keyPEM, 0o640, -1),
		replaceFile(base+".pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub}), 0o644, -1),
	)
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// replaceFile writes a file so that it is never there half or with a wider mode. An owner of -1
// leaves it to whoever writes.
func replaceFile(name string, data []byte, mode fs.FileMode, owner int) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), chown(f.Name(), owner), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

func chown(name string, owner int) error {
	if owner < 0 || os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(name, owner, -1)
}
