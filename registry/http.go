package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// connect makes the HTTP client: one transport that trusts the CA of the configuration,
// for the registry's host alone, and one for every other host.
func (c *Client) connect(roots *x509.CertPool, dial func(context.Context, string, string) (net.Conn, error)) {
	transportWith := func(roots *x509.CertPool) *http.Transport {
		t := &http.Transport{
			DialContext:         dial,
			TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout: 30 * time.Second,
			IdleConnTimeout:     30 * time.Second,
			DisableCompression:  true, // a blob is its bytes: the digest is over them
		}
		if dial == nil {
			t.Proxy = http.ProxyFromEnvironment
			t.DialContext = (&net.Dialer{Timeout: 30 * time.Second}).DialContext
		}
		c.closeIdle = append(c.closeIdle, t.CloseIdleConnections)
		return t
	}
	others := transportWith(nil)
	byHost := &hostTransport{host: hostname(c.at.host), ours: others, others: others}
	if roots != nil {
		byHost.ours = transportWith(roots)
	}
	c.http = &http.Client{Transport: byHost, CheckRedirect: c.checkRedirect}
}

// A hostTransport keeps the trust in one host's CA to that host.
type hostTransport struct {
	host         string
	ours, others http.RoundTripper
}

// RoundTrip sends the request over the transport of its host.
func (t *hostTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.EqualFold(r.URL.Hostname(), t.host) {
		return t.ours.RoundTrip(r)
	}
	return t.others.RoundTrip(r)
}

// checkRedirect lets a registry send a client elsewhere for a blob, over https. http is
// spoken to the one address that the configuration wrote so.
func (c *Client) checkRedirect(r *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	if r.URL.Scheme == "http" && !(c.at.plain && via[len(via)-1].URL.Scheme == "http" && r.URL.Host == c.at.host) {
		return fmt.Errorf("redirected to http://%s: %w", r.URL.Host, ErrPlainHTTP)
	}
	return nil
}

// A resource is a manifest or a blob of a repository.
type resource struct {
	repo name.Repository
	kind string // manifests or blobs
	id   string // tag or digest
}

// String is the reference that messages name it by.
func (r resource) String() string {
	if strings.Contains(r.id, ":") {
		return r.repo.Name() + "@" + r.id
	}
	return r.repo.Name() + ":" + r.id
}

// do asks for a resource until the registry answers something other than "later". The
// response has status 200 and a body for the caller to close.
func (c *Client) do(ctx context.Context, method string, r resource, accept string) (*http.Response, error) {
	u := url.URL{
		Scheme: c.scheme(r.repo.Registry),
		Host:   r.repo.RegistryStr(),
		Path:   "/v2/" + r.repo.RepositoryStr() + "/" + r.kind + "/" + r.id,
	}
	var patience patience
	for {
		req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
		if err != nil {
			return nil, fmt.Errorf("asking for %s: %w", r, err)
		}
		if accept != "" {
			req.Header.Set("Accept", accept)
		}
		resp, err := c.http.Do(req)
		if err != nil {
			return nil, fmt.Errorf("asking for %s: %w", r, withHint(err, u.Host))
		}
		if resp.StatusCode == http.StatusOK {
			return resp, nil
		}
		if resp.StatusCode != http.StatusTooManyRequests {
			err := statusError(resp, r)
			resp.Body.Close()
			return nil, err
		}
		resp.Body.Close()
		if err := patience.wait(ctx, r.String(), resp.Header); err != nil {
			return nil, err
		}
	}
}

// statusError says what a status other than 200 means for an artifact.
func statusError(resp *http.Response, r resource) error {
	switch resp.StatusCode {
	case http.StatusNotFound:
		return &MissingError{Ref: r.String()}
	case http.StatusUnauthorized, http.StatusForbidden:
		scheme, _, _ := strings.Cut(resp.Header.Get("WWW-Authenticate"), " ")
		return &AuthError{Ref: r.String(), Status: resp.StatusCode, Scheme: scheme}
	}
	return fmt.Errorf("asking for %s: %w", r, transport.CheckError(resp, http.StatusOK))
}

// withHint adds to a failed connection what the configuration could have to do with it.
// The failure itself stays as it is.
func withHint(err error, host string) error {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return fmt.Errorf("%w (no root of this machine, nor one in caData, signed the certificate of %s: give its CA in spec.registries.imageRegistry.caData)", err, host)
	}
	if strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return fmt.Errorf("%w (%s does not speak TLS; if that is meant, its url is written http://%s)", err, host, host)
	}
	return err
}

// hostname is the host of host[:port].
func hostname(hostport string) string { return (&url.URL{Host: hostport}).Hostname() }
