package transport

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1" // the format of known_hosts prescribes it; no secret depends on it
	"encoding/base64"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// knownHosts holds what known_hosts files say. It does not change once it is made.
type knownHosts struct {
	files   []string
	entries []knownEntry
	revoked []knownEntry
	unread  []string // file:line of what could not be read
}

// A knownEntry is one line.
type knownEntry struct {
	patterns  []hostPattern
	authority bool
	key       ssh.PublicKey
	where     string // file:line
}

// A hostPattern is one of the names that a line is for.
type hostPattern struct {
	text       string // lower case; may have * and ?
	negated    bool
	salt, hash []byte // instead of text
}

// KnownHosts accepts the keys that files in the format of OpenSSH's known_hosts list:
// hashed names, [host]:port, lists, wildcards, negation, @cert-authority and @revoked.
// The files are read once, now. A line that cannot be read is passed over, as OpenSSH
// does, and named in the error if a host turns out to be unknown. A leading "~/" is the
// home directory of whoever runs this program.
func KnownHosts(files ...string) (HostKeys, error) {
	if len(files) == 0 {
		return nil, fmt.Errorf("known hosts: no file is given")
	}
	k := &knownHosts{}
	for _, name := range files {
		path, err := expandHome(name)
		if err != nil {
			return nil, fmt.Errorf("known hosts: %w", err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("known hosts: %w", err)
		}
		k.read(path, data)
	}
	return k, nil
}

// read adds the lines of a file.
func (k *knownHosts) read(file string, data []byte) {
	k.files = append(k.files, file)
	n := 0
	for line := range bytes.Lines(data) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		where := fmt.Sprintf("%s:%d", file, n)
		marker, hosts, key, _, _, err := ssh.ParseKnownHosts(line)
		if err != nil {
			k.unread = append(k.unread, where)
			continue
		}
		e := knownEntry{authority: marker == "cert-authority", key: key, where: where}
		for _, h := range hosts {
			p, ok := parsePattern(h)
			if !ok {
				k.unread = append(k.unread, where)
				continue
			}
			e.patterns = append(e.patterns, p)
		}
		switch marker {
		case "revoked":
			k.revoked = append(k.revoked, e)
		case "", "cert-authority":
			k.entries = append(k.entries, e)
		default:
			k.unread = append(k.unread, where)
		}
	}
}

// parsePattern reads one name of a line.
func parsePattern(s string) (p hostPattern, ok bool) {
	if rest, hashed := strings.CutPrefix(s, "|1|"); hashed {
		salt, hash, ok := strings.Cut(rest, "|")
		if !ok {
			return p, false
		}
		var err1, err2 error
		p.salt, err1 = base64.StdEncoding.DecodeString(salt)
		p.hash, err2 = base64.StdEncoding.DecodeString(hash)
		return p, err1 == nil && err2 == nil && len(p.hash) == sha1.Size
	}
	s, p.negated = strings.CutPrefix(strings.ToLower(s), "!")
	p.text = canonicalName(s)
	return p, s != "" && !strings.HasPrefix(s, "|")
}

// canonicalName writes the IP address in s, if it is one, in the one way that addresses
// are compared in.
func canonicalName(s string) string {
	if ip, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return ip.String()
	}
	if host, port, err := net.SplitHostPort(s); err == nil && strings.HasPrefix(s, "[") {
		if ip, err := netip.ParseAddr(host); err == nil {
			host = ip.String()
		}
		return "[" + host + "]:" + port
	}
	return s
}

// namesOf returns the names that addr, a host:port, may stand under.
func namesOf(addr string) []string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return []string{canonicalName(strings.ToLower(addr))}
	}
	host = canonicalName(strings.ToLower(host))
	bracketed := "[" + host + "]:" + port
	if port == "22" {
		return []string{host, bracketed} // OpenSSH writes the first, others have written the second
	}
	return []string{bracketed}
}

// matches reports whether the line is for one of names.
func (e knownEntry) matches(names []string) bool {
	found := false
	for _, p := range e.patterns {
		if !slices.ContainsFunc(names, p.match) {
			continue
		}
		if p.negated {
			return false
		}
		found = true
	}
	return found
}

func (p hostPattern) match(name string) bool {
	if p.hash != nil {
		mac := hmac.New(sha1.New, p.salt)
		mac.Write([]byte(name))
		return hmac.Equal(mac.Sum(nil), p.hash)
	}
	return glob(p.text, name)
}

// glob matches * and ?, which stand for any text and any byte.
func glob(pattern, s string) bool {
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(s) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, mark = i, j
			i++
		case i < len(pattern) && (pattern[i] == '?' || pattern[i] == s[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}
