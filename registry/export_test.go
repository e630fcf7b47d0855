package registry

import (
	"net/http"
	"time"
)

// SetTransport replaces the network beneath a client.
func (c *Client) SetTransport(t http.RoundTripper) { c.http.Transport = t }

// RetryAfter is what a response asks to wait.
func RetryAfter(h http.Header, now time.Time) time.Duration { return retryAfter(h, now) }
