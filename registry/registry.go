// Package registry reads OCI artifacts from the image registry of an MKE cluster: whether
// those that an operation will pull are there, and the k0s binary itself.
//
// It speaks the scheme that the configuration says and no other. A registry is https unless
// its URL is written with http://, also on a private address, on loopback and under .local,
// where the client library on its own would take http; an https request that is redirected
// to http ends in [ErrPlainHTTP].
//
// It asks anonymously and never sends an Authorization header. A registry that demands
// credentials, a token for anonymous pulls included, is reported as [*AuthError].
//
// Nothing is retried but a request that the registry put off with status 429; the context
// says how long all of it may take.
package registry

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"
)

// DefaultURL is the image registry of a cluster whose MkeConfig names none.
const DefaultURL = "registry.mirantis.com/mke"

// Config says which registry to ask and how to reach it. The zero Config is [DefaultURL],
// trusted by the system's roots and dialed from this machine.
type Config struct {
	// URL is MkeConfig's spec.registries.imageRegistry.url: host[:port][/path], with https://
	// or without, or with http:// for a registry without TLS. DefaultURL if empty.
	URL string

	// CAData is MkeConfig's spec.registries.imageRegistry.caData: PEM certificates that are
	// trusted besides the system's roots, for the host of URL alone. None if its length is 0;
	// anything else has to hold a certificate of a CA that is valid now.
	CAData []byte

	// Dial opens every connection of the client, in place of this machine's network and of
	// the proxies in its environment. The Dial of a host's SSH connection makes the client
	// see what that host sees.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// Jobs is how many artifacts are asked for at once; 4 if it is 0 or less.
	Jobs int
}

// A Client asks one registry, and others for artifacts that are named in full. It may be
// used by several goroutines.
type Client struct {
	at   location
	http *http.Client
	jobs int

	closeIdle []func()
}

// New returns a client for the registry of c. It contacts nothing. The error joins what is
// wrong in c: a [*RefError] for the URL, a [*CAError] for the certificates.
func New(c Config) (*Client, error) {
	at, urlErr := parseURL(c.URL)
	roots, caErr := rootsWith(c.CAData)
	if err := errors.Join(urlErr, caErr); err != nil {
		return nil, err
	}
	jobs := c.Jobs
	if jobs <= 0 {
		jobs = 4
	}
	client := &Client{at: at, jobs: jobs}
	client.connect(roots, c.Dial)
	return client, nil
}

// Close gives back the connections that are kept for the next request. A binary that is
// still being read is not cut off.
func (c *Client) Close() error {
	for _, f := range c.closeIdle {
		f()
	}
	return nil
}

// An Artifact is something that an operation is going to pull.
type Artifact struct {
	Ref      string // host[:port]/path:tag or host[:port]/path@sha256:…, without a scheme
	NeededBy string // what needs it, in words for a person: "the k0s binary of 10.0.1.15"
}

// A Presence is what a registry said about an artifact.
type Presence struct {
	Artifact
	Digest string // sha256:…, what the registry serves now; empty if Err is set
	Err    error  // nil if the registry has it; else an error of Verify
}

// Verify asks for each artifact and returns what was found, in the order of the arguments.
// The same reference is asked for once. The error joins all that is wrong, among it a
// [*MissingError] for each artifact that its registry does not have. A reference that does
// not parse ([*RefError]), a registry that cannot be reached, that demands credentials
// ([*AuthError]) or that limits the rate for longer than ctx lasts ([*RateLimitError]) is
// never reported as a missing artifact.
func (c *Client) Verify(ctx context.Context, artifacts ...Artifact) ([]Presence, error) {
	type question struct {
		neededBy []string
		digest   string
		err      error
	}
	questions := map[string]*question{}
	var order []string
	for _, a := range artifacts {
		q := questions[a.Ref]
		if q == nil {
			q = &question{}
			questions[a.Ref] = q
			order = append(order, a.Ref)
		}
		if a.NeededBy != "" {
			q.neededBy = append(q.neededBy, a.NeededBy)
		}
	}

	var wg sync.WaitGroup
	next := make(chan string)
	for range min(c.jobs, len(order)) {
		wg.Go(func() {
			for ref := range next {
				q := questions[ref]
				q.digest, q.err = c.resolve(ctx, ref, q.neededBy)
			}
		})
	}
	for _, ref := range order {
		next <- ref
	}
	close(next)
	wg.Wait()

	found := make([]Presence, 0, len(artifacts))
	for _, a := range artifacts {
		q := questions[a.Ref]
		found = append(found, Presence{Artifact: a, Digest: q.digest, Err: q.err})
	}
	errs := make([]error, 0, len(order))
	for _, ref := range order {
		errs = append(errs, questions[ref].err)
	}
	return found, errors.Join(errs...)
}

// resolve returns the digest under which ref is served now.
func (c *Client) resolve(ctx context.Context, ref string, neededBy []string) (string, error) {
	r, err := parseReference(ref)
	if err != nil {
		return "", err
	}
	digest, err := c.headManifest(ctx, r)
	return digest, withNeed(err, neededBy)
}

// withNeed completes the error of an artifact that is missing by what needs it.
func withNeed(err error, neededBy []string) error {
	if missing, ok := errors.AsType[*MissingError](err); ok {
		missing.NeededBy = neededBy
	}
	return err
}

// scheme is that of the configuration for the registry it names, and https elsewhere.
func (c *Client) scheme(r name.Registry) string {
	if c.at.plain && r.RegistryStr() == c.at.host {
		return "http"
	}
	return "https"
}
