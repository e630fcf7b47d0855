package registry

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrPlainHTTP is returned for a request that was redirected to an http:// address nobody
// wrote in the configuration.
var ErrPlainHTTP = errors.New("refusing plain http where the configuration does not say http://")

// A MissingError is an artifact that its registry does not have. It says so only if the
// registry said so.
type MissingError struct {
	Ref      string
	NeededBy []string // what needs it; may be empty
}

// Error names the artifact and what needs it.
func (e *MissingError) Error() string {
	s := "the registry does not have " + e.Ref
	if len(e.NeededBy) > 0 {
		s += " (needed by " + strings.Join(e.NeededBy, ", ") + ")"
	}
	return s
}

// An AuthError is a registry that answers only to who shows credentials, or refuses to
// say whether it has the artifact.
type AuthError struct {
	Ref    string
	Status int    // the HTTP status, 401 or 403
	Scheme string // what it asks for: Bearer, Basic; may be empty
}

// Error names the artifact and what the registry asked for.
func (e *AuthError) Error() string {
	asks := ""
	if e.Scheme != "" {
		asks = ", it asks for " + e.Scheme
	}
	return fmt.Sprintf("the registry demands credentials for %s (status %d%s): only anonymous registries are supported so far", e.Ref, e.Status, asks)
}

// A RateLimitError is a registry that put off a request (status 429) beyond the deadline of
// the context, or longer than a client waits without one. Whether it has the artifact is
// not known.
type RateLimitError struct {
	Ref   string
	Wait  time.Duration // what it asked for last
	Tries int           // how often it was asked
	Err   error         // why no more: the end of the context, or nil
}

// Error names the artifact, and how long the registry wanted to be left alone.
func (e *RateLimitError) Error() string {
	s := fmt.Sprintf("the registry limits the rate: %s was put off %d times, last by %v, which is longer than this may take", e.Ref, e.Tries, e.Wait)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the error of the context, if that ended the waiting.
func (e *RateLimitError) Unwrap() error { return e.Err }

// A CAError is a certificate bundle that cannot vouch for a registry.
type CAError struct {
	Subject string // of the certificate that is the reason; empty if there is none
	Problem string
}

// Error names the certificate, what is wrong with it, and what would be right.
func (e *CAError) Error() string {
	s := "registry caData: "
	if e.Subject != "" {
		s += "certificate " + e.Subject + ": "
	}
	return s + e.Problem
}

// A RefError is a registry URL, a reference, a version or a platform that does not parse.
type RefError struct {
	Kind    string // "registry url", "reference", "k0s version", "platform"
	Text    string // as given, less any credentials
	Problem string // what is wrong, and how it is written
}

// Error names the text, what is wrong with it, and how it is written.
func (e *RefError) Error() string { return fmt.Sprintf("%s %q: %s", e.Kind, e.Text, e.Problem) }

// A PlatformError is an artifact that is there but holds no k0s binary for the platform.
type PlatformError struct {
	Ref  string
	Want string   // os/architecture
	Have []string // the platforms it is there for; may be empty
}

// Error names the artifact, the platform, and those it does have.
func (e *PlatformError) Error() string {
	have := "it names no platform"
	if len(e.Have) > 0 {
		have = "it has " + strings.Join(e.Have, ", ")
	}
	return fmt.Sprintf("%s holds no k0s binary for %s: %s", e.Ref, e.Want, have)
}

// A DigestError is content that is not what its digest promised: damaged, cut short, or
// replaced. It must not be used.
type DigestError struct {
	Ref       string
	Want, Got string // digests; Got is empty if the length alone was wrong
	WantSize  int64  // bytes
	GotSize   int64  // bytes
}

// Error names the artifact and what was promised and received.
func (e *DigestError) Error() string {
	if e.Got == "" {
		return fmt.Sprintf("%s is damaged: %d bytes came, %d were promised", e.Ref, e.GotSize, e.WantSize)
	}
	return fmt.Sprintf("%s is damaged: its content has digest %s, not %s", e.Ref, e.Got, e.Want)
}
