package registry_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mkesdk/mkesdk/registry"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// clientOf is a client over a network of the test's own, for tests that bend time.
func clientOf(t *testing.T, f roundTripper) *registry.Client {
	t.Helper()
	c, err := registry.New(registry.Config{URL: "r.test/mke"})
	if err != nil {
		t.Fatal(err)
	}
	c.SetTransport(f)
	return c
}

// limiting answers 429 n times (for ever if negative), with a header, and then yes.
func limiting(n int, header func() http.Header) (roundTripper, *int) {
	asked := new(int)
	return func(r *http.Request) (*http.Response, error) {
		*asked++
		resp := &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{}, Body: http.NoBody, Request: r}
		if n < 0 || *asked <= n {
			if header != nil {
				resp.Header = header()
			}
			return resp, nil
		}
		resp.StatusCode = http.StatusOK
		resp.Header.Set("Docker-Content-Digest", "sha256:"+strings.Repeat("a", 64))
		return resp, nil
	}, asked
}

func seconds(s string) func() http.Header {
	return func() http.Header { return http.Header{"Retry-After": {s}} }
}

func TestRateLimit(t *testing.T) {
	inADate := func(ahead, clockAhead time.Duration) func() http.Header {
		return func() http.Header {
			now := time.Now().Add(clockAhead)
			return http.Header{"Date": {now.UTC().Format(http.TimeFormat)}, "Retry-After": {now.Add(ahead).UTC().Format(http.TimeFormat)}}
		}
	}
	for _, tc := range []struct {
		name     string
		times    int
		header   func() http.Header
		deadline time.Duration // 0 for none
		asked    int
		waited   time.Duration
		limited  bool
	}{
		{"seconds, twice", 2, seconds("1"), time.Minute, 3, 2 * time.Second, false},
		{"a date", 1, inADate(7*time.Second, 0), time.Minute, 2, 7 * time.Second, false},
		{"a date of another clock", 1, inADate(7*time.Second, time.Hour), time.Minute, 2, 7 * time.Second, false},
		{"a date gone by", 1, inADate(-time.Hour, 0), time.Minute, 2, time.Second, false},
		{"nothing said", 3, nil, time.Minute, 4, 7 * time.Second, false},
		{"nonsense said", 1, seconds("soon"), time.Minute, 2, time.Second, false},
		{"less than nothing", 1, seconds("-5"), time.Minute, 2, time.Second, false},
		{"for ever", -1, seconds("10"), time.Minute, 6, 50 * time.Second, true},
		{"for ever, no deadline", -1, seconds("60"), 0, 6, 5 * time.Minute, true},
		{"beyond the deadline", -1, seconds("61"), time.Minute, 1, 0, true},
		{"beyond all bounds", -1, seconds("9223372036854775807"), 0, 1, 0, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network, asked := limiting(tc.times, tc.header)
				c := clientOf(t, network)
				ctx := t.Context()
				if tc.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.deadline)
					defer cancel()
				}
				start := time.Now()
				_, err := c.Verify(ctx, registry.Artifact{Ref: "r.test/mke/k0s:v1"})
				if waited := time.Since(start); waited != tc.waited || *asked != tc.asked {
					t.Errorf("asked %d times in %v, want %d in %v", *asked, waited, tc.asked, tc.waited)
				}
				limit, limited := errors.AsType[*registry.RateLimitError](err)
				if limited != tc.limited || (err != nil) != tc.limited {
					t.Fatalf("got %v, want a RateLimitError: %v", err, tc.limited)
				}
				if limited && (limit.Ref != "r.test/mke/k0s:v1" || limit.Tries != tc.asked) {
					t.Errorf("got %+v", limit)
				}
				if _, missing := errors.AsType[*registry.MissingError](err); missing {
					t.Errorf("reported as missing: %v", err)
				}
				if limited && tc.deadline > 0 && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v is not the deadline", err)
				}
			})
		})
	}
}

func TestRateLimitEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, _ := limiting(-1, seconds("100"))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		start := time.Now()
		_, err := clientOf(t, network).Verify(ctx, registry.Artifact{Ref: "r.test/mke/k0s:v1"})
		if !errors.Is(err, context.Canceled) || time.Since(start) != 3*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

// The whole way, over a real connection.
func TestRateLimitOfABlob(t *testing.T) {
	s := newServer(t)
	b, err := s.client(t).Binary(t.Context(), s.putIndexed(t, "v1", "binary"), "linux/amd64")
	if err != nil {
		t.Fatal(err)
	}
	times := 0
	s.before = func(w http.ResponseWriter, _ *http.Request) bool {
		if times++; times > 1 {
			return false
		}
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	}
	r, err := b.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || string(got) != "binary" {
		t.Errorf("read %q, %v", got, err)
	}
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("120", "")
	f.Add("Fri, 31 Dec 1999 23:59:59 GMT", "Fri, 31 Dec 1999 23:59:39 GMT")
	f.Add("-1", "x")
	f.Add("99999999999999999999", "")
	f.Fuzz(func(t *testing.T, after, date string) {
		h := http.Header{"Retry-After": {after}, "Date": {date}}
		if d := registry.RetryAfter(h, time.Now()); d < 0 {
			t.Errorf("waits %v", d)
		}
	})
}
