package registry

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// How long a client lets a registry put it off. The deadline of the context comes first; the
// sum bounds the waiting of a caller who set none.
const (
	firstWait = time.Second
	mostWait  = 30 * time.Second // between two tries, where the registry does not say
	sumOfWait = 5 * time.Minute
)

// A patience is what one request has waited so far.
type patience struct {
	tries int
	sum   time.Duration
}

// wait sits out the time that a response with status 429 asks for. It returns a
// *RateLimitError at once if that would not be over before the deadline of ctx.
func (p *patience) wait(ctx context.Context, ref string, h http.Header) error {
	now := time.Now()
	d := retryAfter(h, now)
	if d <= 0 {
		d = min(firstWait<<min(p.tries, 10), mostWait)
	}
	p.tries++
	p.sum += d
	limited := &RateLimitError{Ref: ref, Wait: d, Tries: p.tries}
	if deadline, ok := ctx.Deadline(); ok && !now.Add(d).Before(deadline) {
		limited.Err = context.DeadlineExceeded
		return limited
	}
	if p.sum > sumOfWait {
		return limited
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		limited.Err = context.Cause(ctx)
		return limited
	}
}

// retryAfter reads the header of that name: seconds, or a date, which is taken against the
// registry's own clock where it tells the time. 0 if it says nothing to wait for.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := h.Get("Retry-After")
	if seconds, err := strconv.ParseInt(v, 10, 64); err == nil {
		// A number that overflows a Duration is as good as for ever.
		return time.Duration(max(0, min(seconds, 1<<31))) * time.Second
	}
	date, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	if sent, err := http.ParseTime(h.Get("Date")); err == nil {
		now = sent
	}
	return max(0, date.Sub(now))
}
