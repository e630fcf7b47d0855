package registry

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// A location is a registry's URL, taken apart.
type location struct {
	plain bool   // http:// was written
	host  string // host[:port], as written
	path  string // without slashes at either end; may be empty
}

// parseURL reads host[:port][/path] with or without http:// or https://. Other schemes, user
// information, queries and fragments have no meaning for a registry and are refused, so
// that nothing is dropped in silence.
func parseURL(s string) (location, error) {
	if s == "" {
		s = DefaultURL
	}
	bad := func(format string, args ...any) (location, error) {
		return location{}, &RefError{Kind: "registry url", Text: withoutUserInfo(s), Problem: fmt.Sprintf(format, args...)}
	}

	rest, at := s, location{}
	if scheme, after, ok := strings.Cut(s, "://"); ok {
		switch strings.ToLower(scheme) {
		case "https":
		case "http":
			at.plain = true
		default:
			return bad("the scheme of an image registry is https or http, not %q", scheme)
		}
		rest = after
	}
	host, path, _ := strings.Cut(rest, "/")
	if strings.Contains(host, "@") {
		return bad("credentials have no place in it: they come from a Secret")
	}
	if err := checkHost(host); err != nil {
		return bad("%v; write host[:port]/path", err)
	}
	at.host, at.path = host, strings.TrimSuffix(path, "/")
	if at.path != "" {
		if _, err := name.NewRepository(at.host + "/" + at.path + "/k0s"); err != nil || !cleanPath(at.path) {
			return bad("%q is no repository path: lower case letters, digits and .-_ between single slashes", at.path)
		}
	}
	return at, nil
}

// checkHost wants a host that a reference can begin with: by convention the first part of a
// reference is a host only if it holds a dot or a colon, or is localhost. "mirror/mke/k0s"
// would be asked from Docker Hub.
func checkHost(host string) error {
	if host == "" {
		return fmt.Errorf("the host is missing")
	}
	u, err := url.Parse("//" + host)
	if err != nil || u.Host != host || u.Hostname() == "" {
		return fmt.Errorf("%q is no host", host)
	}
	if strings.HasSuffix(host, ":") {
		return fmt.Errorf("%q has a colon and no port", host)
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("port %s is not between 1 and 65535", p)
		}
	}
	if h := u.Hostname(); strings.ContainsRune(h, ':') && (net.ParseIP(h) == nil || !strings.HasPrefix(host, "[")) {
		return fmt.Errorf("%q is no IPv6 address in brackets", host)
	}
	if host != "localhost" && !strings.ContainsAny(host, ".:") {
		return fmt.Errorf("%q would be taken for a repository of Docker Hub, add its domain or its port (%s:443)", host, host)
	}
	return nil
}

// cleanPath tells whether every part of a path has a name of its own.
func cleanPath(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}

// parseReference reads a reference that names its registry and its tag or digest: what an
// operation pulls is not left to a default.
func parseReference(s string) (name.Reference, error) {
	bad := func(problem string) (name.Reference, error) {
		return nil, &RefError{Kind: "reference", Text: withoutUserInfo(s), Problem: problem}
	}
	if strings.Contains(s, "://") {
		return bad("a reference bears no scheme; write host[:port]/path:tag")
	}
	host, path, ok := strings.Cut(s, "/")
	if !ok {
		return bad("the registry is missing; write host[:port]/path:tag")
	}
	if strings.Contains(host, "@") {
		return bad("credentials have no place in it; write host[:port]/path:tag")
	}
	if err := checkHost(host); err != nil {
		return bad(fmt.Sprintf("%v; write host[:port]/path:tag", err))
	}
	r, err := name.ParseReference(s, name.WithDefaultTag(""))
	if err != nil {
		return bad("write host[:port]/path:tag or host[:port]/path@sha256:…, the path in lower case")
	}
	if r.Identifier() == "" {
		return bad("a tag or a digest is missing; write host[:port]/path:tag")
	}
	repo, _, _ := strings.Cut(path, "@")
	if !cleanPath(repo) {
		return bad("a part of its path is empty or made of dots")
	}
	return r, nil
}

// K0sReference returns where a registry keeps the k0s binary of a version: the artifact
// <registry>/k0s:<version>, with "+" written "-" because a tag cannot hold it. The registry is
// written as in Config.URL (DefaultURL if empty), the version as `k0s version` prints it:
// v1.36.3+k0s.2. The error is a [*RefError].
func K0sReference(registry, version string) (string, error) {
	at, err := parseURL(registry)
	if err != nil {
		return "", err
	}
	tag := strings.ReplaceAll(version, "+", "-")
	ref := at.host + "/" + strings.TrimPrefix(at.path+"/k0s", "/") + ":" + tag
	number := len(tag) > 1 && tag[0] == 'v' && '0' <= tag[1] && tag[1] <= '9'
	if _, err := name.NewTag(ref); err != nil || !number || strings.ContainsAny(tag, ":/@") {
		return "", &RefError{Kind: "k0s version", Text: version, Problem: "write it as k0s version prints it: v1.36.3+k0s.2"}
	}
	return ref, nil
}

// withoutUserInfo hides what stands before an @ of the host: it may be a password.
func withoutUserInfo(s string) string {
	start := 0
	if i := strings.Index(s, "://"); i >= 0 {
		start = i + len("://")
	}
	end := len(s)
	if i := strings.IndexByte(s[start:], '/'); i >= 0 {
		end = start + i
	}
	if i := strings.LastIndexByte(s[start:end], '@'); i >= 0 {
		return s[:start] + "***" + s[start+i:]
	}
	return s
}
