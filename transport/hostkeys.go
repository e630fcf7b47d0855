package transport

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// HostKeys says which keys a host may have. An implementation is safe for use by several
// goroutines. Hosts share the connection to a bastion only if its HostKeys was made by
// this package, since nothing is known of others.
type HostKeys interface {
	// Algorithms returns the host key algorithms to ask addr for first, in order of
	// preference; none if nothing is known.
	Algorithms(addr string) []string

	// Check returns nil if key is the one of addr, and a *[HostKeyError] if it is not.
	Check(addr string, key ssh.PublicKey) error
}

// A HostKeyError says that a host showed a key that is not known to be its own. It
// matches [ErrHostKey].
type HostKeyError struct {
	Host    string   // the configured host:port
	Got     string   // the fingerprint of the key that the host showed, as ssh-keygen -l prints it
	Known   []string // the fingerprints that are known for the host; none if it is unknown
	Revoked bool     // the key is marked as revoked
	Reason  string   // what else is to be said, such as where the known keys stand
}

// Error names both fingerprints.
func (e *HostKeyError) Error() string {
	var s string
	switch {
	case e.Revoked:
		s = fmt.Sprintf("%s: host key %s is revoked", e.Host, e.Got)
	case len(e.Known) == 0:
		s = fmt.Sprintf("%s: host key %s is unknown", e.Host, e.Got)
	default:
		s = fmt.Sprintf("%s: host key is %s, but %s is known: the host was set up anew, or something else answers for it",
			e.Host, e.Got, strings.Join(e.Known, " or "))
	}
	if e.Reason != "" {
		s += " (" + e.Reason + ")"
	}
	return s
}

// Is reports whether target is ErrHostKey.
func (e *HostKeyError) Is(target error) bool { return target == ErrHostKey }

// pinned accepts certain keys.
type pinned struct {
	keys         []ssh.PublicKey
	fingerprints []string
}

// Pinned accepts the given keys and no other. With none it accepts nothing.
func Pinned(keys ...ssh.PublicKey) HostKeys {
	p := &pinned{keys: slices.Clone(keys)}
	for _, k := range keys {
		p.fingerprints = append(p.fingerprints, ssh.FingerprintSHA256(k))
	}
	return p
}

// PinnedFingerprint accepts keys whose SHA-256 fingerprint, written as ssh-keygen -l
// prints it, is one of the given.
func PinnedFingerprint(fingerprints ...string) (HostKeys, error) {
	p := &pinned{}
	for _, f := range fingerprints {
		f = strings.TrimSpace(f)
		if digest, ok := strings.CutPrefix(f, "SHA256:"); !ok || len(digest) != 43 {
			return nil, fmt.Errorf("host key fingerprint %q: want SHA256: and 43 characters, as ssh-keygen -l prints it", f)
		}
		p.fingerprints = append(p.fingerprints, f)
	}
	return p, nil
}

// Algorithms returns those of the pinned keys, if the keys themselves are known.
func (p *pinned) Algorithms(string) []string {
	var algos []string
	for _, k := range p.keys {
		algos = append(algos, algorithmsOf(k)...)
	}
	return algos
}

// Check compares fingerprints.
func (p *pinned) Check(addr string, key ssh.PublicKey) error {
	got := ssh.FingerprintSHA256(key)
	if slices.Contains(p.fingerprints, got) {
		return nil
	}
	if cert, ok := key.(*ssh.Certificate); ok && slices.Contains(p.fingerprints, ssh.FingerprintSHA256(cert.Key)) {
		return nil
	}
	return &HostKeyError{Host: addr, Got: got, Known: slices.Clone(p.fingerprints), Reason: "pinned"}
}

// anyKey accepts every key.
type anyKey struct{ _ byte }

// InsecureIgnoreHostKey accepts whatever key a host shows, and so whoever answers for it.
// It is for throw-away machines.
func InsecureIgnoreHostKey() HostKeys { return &anyKey{} }

// Algorithms has no preference.
func (*anyKey) Algorithms(string) []string { return nil }

// Check accepts.
func (*anyKey) Check(string, ssh.PublicKey) error { return nil }

// algorithmsOf returns the signature algorithms that a host with the given key can be asked for.
func algorithmsOf(key ssh.PublicKey) []string {
	if key.Type() == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{key.Type()}
}

// offer puts the preferred algorithms in front of all that are supported: a host that has
// changed its kind of key is to be told from one that speaks none of ours.
func offer(preferred []string) []string {
	supported := ssh.SupportedAlgorithms().HostKeys
	var algos []string
	for _, a := range append(slices.Clone(preferred), supported...) {
		if slices.Contains(supported, a) && !slices.Contains(algos, a) {
			algos = append(algos, a)
		}
	}
	return algos
}
