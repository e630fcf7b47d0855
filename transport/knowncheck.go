package transport

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Algorithms returns the kinds of key that are known for addr, certificates first where
// an authority is known.
func (k *knownHosts) Algorithms(addr string) []string {
	names := namesOf(addr)
	var certs, plain []string
	for _, e := range k.entries {
		switch {
		case !e.matches(names):
		case e.authority:
			for _, a := range ssh.SupportedAlgorithms().HostKeys {
				if strings.Contains(a, "-cert-") {
					certs = append(certs, a)
				}
			}
		default:
			plain = append(plain, algorithmsOf(e.key)...)
		}
	}
	return append(certs, plain...)
}

// Check looks key up.
func (k *knownHosts) Check(addr string, key ssh.PublicKey) error {
	fail := &HostKeyError{Host: addr, Got: ssh.FingerprintSHA256(key)}
	cert, isCert := key.(*ssh.Certificate)
	if isCert {
		fail.Got = ssh.FingerprintSHA256(cert.Key)
	}
	for _, r := range k.revoked {
		if sameKey(r.key, key) || isCert && (sameKey(r.key, cert.Key) || sameKey(r.key, cert.SignatureKey)) {
			fail.Revoked, fail.Reason = true, r.where
			return fail
		}
	}
	names := namesOf(addr)
	var where, certErrs []string
	for _, e := range k.entries {
		if !e.matches(names) {
			continue
		}
		if e.authority {
			if !isCert || !sameKey(e.key, cert.SignatureKey) {
				continue
			}
			err := checkHostCert(addr, cert)
			if err == nil {
				return nil
			}
			certErrs = append(certErrs, fmt.Sprintf("%s: %v", e.where, err))
			continue
		}
		if sameKey(e.key, key) || isCert && sameKey(e.key, cert.Key) {
			return nil
		}
		if f := ssh.FingerprintSHA256(e.key); !slices.Contains(fail.Known, f) {
			fail.Known = append(fail.Known, f)
		}
		where = append(where, e.where)
	}
	switch {
	case len(certErrs) > 0:
		fail.Reason = strings.Join(certErrs, "; ")
	case len(where) > 0:
		fail.Reason = strings.Join(where, ", ")
	default:
		fail.Reason = "looked for in " + strings.Join(k.files, ", ")
		if len(k.unread) > 0 {
			fail.Reason += "; could not read " + strings.Join(k.unread, ", ")
		}
	}
	return fail
}

// checkHostCert checks everything about a certificate but whether its authority is known.
func checkHostCert(addr string, cert *ssh.Certificate) error {
	if cert.CertType != ssh.HostCert {
		return fmt.Errorf("the certificate is not for a host")
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	host = canonicalName(strings.ToLower(host))
	i := slices.IndexFunc(cert.ValidPrincipals, func(p string) bool { return glob(canonicalName(strings.ToLower(p)), host) })
	if i < 0 {
		return fmt.Errorf("the certificate is for %q", cert.ValidPrincipals)
	}
	// The checker knows no wildcards; it is given the principal that was found to match.
	return new(ssh.CertChecker).CheckCert(cert.ValidPrincipals[i], cert)
}

func sameKey(a, b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }
