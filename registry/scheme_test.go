package registry_test

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/mkesdk/mkesdk/registry"
)

// A registry on loopback, a private address or .local that does not speak TLS is not
// spoken to over http, whatever the library beneath thinks of such addresses.
func TestHTTPSNeverFallsBack(t *testing.T) {
	for _, host := range []string{"127.0.0.1:5000", "localhost:5000", "10.99.0.2:5000", "192.168.1.1:5000", "[::1]:5000", "reg.local:5000", "x.localhost:5000"} {
		for _, scheme := range []string{"", "https://"} {
			s := newPlainServer(t)
			s.putIndexed(t, "v1", "binary")
			c := newClient(t, registry.Config{URL: scheme + host + "/mke", Dial: dialTo(s)})
			_, err := c.Verify(t.Context(), registry.Artifact{Ref: host + "/mke/k0s:v1"})
			if err == nil || !strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") || !strings.Contains(err.Error(), "does not speak TLS") {
				t.Errorf("%s%s: %v, want the error of the https request, with a hint", scheme, host, err)
			}
			if asked := s.requests(); len(asked) != 0 {
				t.Errorf("%s%s was asked over http: %q", scheme, host, asked)
			}
		}
	}
}

func TestHTTPWhereItIsWritten(t *testing.T) {
	s := newPlainServer(t)
	ref := s.putIndexed(t, "v1", "binary")
	c := newClient(t, registry.Config{URL: "http://" + s.host() + "/mke"})
	if _, err := c.Verify(t.Context(), registry.Artifact{Ref: ref}); err != nil {
		t.Error(err)
	}

	// It is written for that registry alone.
	other := newPlainServer(t)
	_, err := c.Verify(t.Context(), registry.Artifact{Ref: other.putIndexed(t, "v1", "binary")})
	if err == nil || len(other.requests()) != 0 {
		t.Errorf("another registry was spoken to over http: %v, %q", err, other.requests())
	}
}

func TestRedirectToHTTPIsRefused(t *testing.T) {
	plain, other := newPlainServer(t), newPlainServer(t)
	plain.putIndexed(t, "v1", "binary")
	other.putIndexed(t, "v1", "binary")
	secure := newServer(t)
	redirect := func(to string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, to+r.URL.Path, http.StatusTemporaryRedirect)
			return true
		}
	}
	secure.before = redirect(plain.URL)
	_, err := secure.client(t).Verify(t.Context(), registry.Artifact{Ref: secure.host() + "/mke/k0s:v1"})
	if !errors.Is(err, registry.ErrPlainHTTP) || !strings.Contains(err.Error(), plain.host()) {
		t.Errorf("got %v, want ErrPlainHTTP that names %s", err, plain.host())
	}
	if asked := plain.requests(); len(asked) != 0 {
		t.Errorf("the redirect was followed: %q", asked)
	}

	plain.before = redirect(other.URL)
	c := newClient(t, registry.Config{URL: "http://" + plain.host() + "/mke"})
	_, err = c.Verify(t.Context(), registry.Artifact{Ref: plain.host() + "/mke/k0s:v1"})
	if !errors.Is(err, registry.ErrPlainHTTP) || len(other.requests()) != 0 {
		t.Errorf("from http to another http: %v, %q, want ErrPlainHTTP", err, other.requests())
	}
}

func TestRedirectInCircles(t *testing.T) {
	s := newServer(t)
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, r.URL.Path, http.StatusFound)
		return true
	}
	_, err := s.client(t).Verify(t.Context(), registry.Artifact{Ref: s.host() + "/mke/k0s:v1"})
	if err == nil || !strings.Contains(err.Error(), "10 redirects") {
		t.Errorf("got %v", err)
	}
}

// The CA of the configuration vouches for the configured host, and for no other.
func TestCAIsForItsHostAlone(t *testing.T) {
	ca := newCA(t, nil)
	a, b := newServer(t), newServer(t)
	for s, name := range map[*server]string{a: "a.test", b: "b.test"} {
		s.TLS.Certificates[0] = ca.leaf(t, name) // one CA signed both
		s.putIndexed(t, "v1", "binary")
	}
	dial := func(ctx context.Context, _, addr string) (net.Conn, error) {
		to := a
		if strings.HasPrefix(addr, "b.test:") {
			to = b
		}
		var d net.Dialer
		return d.DialContext(ctx, "tcp", to.host())
	}

	c := newClient(t, registry.Config{URL: "a.test/mke", CAData: ca.pem, Dial: dial})
	if _, err := c.Verify(t.Context(), registry.Artifact{Ref: "a.test/mke/k0s:v1"}); err != nil {
		t.Errorf("the configured host: %v", err)
	}
	_, err := c.Verify(t.Context(), registry.Artifact{Ref: "b.test/mke/k0s:v1"})
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); !ok {
		t.Errorf("another host is trusted by the CA of the first: %v", err)
	}

	a.before = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, "https://b.test"+r.URL.Path, http.StatusTemporaryRedirect)
		return true
	}
	_, err = c.Verify(t.Context(), registry.Artifact{Ref: "a.test/mke/k0s:v1"})
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); !ok {
		t.Errorf("a redirect takes the trust along: %v", err)
	}

	untrusting := newClient(t, registry.Config{URL: "a.test/mke", Dial: dial})
	_, err = untrusting.Verify(t.Context(), registry.Artifact{Ref: "a.test/mke/k0s:v1"})
	if err == nil || !strings.Contains(err.Error(), "imageRegistry.caData") {
		t.Errorf("without a CA: %v, want a hint at caData", err)
	}
}

func dialTo(s *server) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", s.host())
	}
}
