package transport

import (
	"context"
	"fmt"
)

// ctxErr returns why a context has ended, in a way that matches both its cause and
// context.Canceled or context.DeadlineExceeded.
func ctxErr(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == err || err == nil { // the very same, not one that wraps it
		return err
	}
	if _, ok := cause.(*timeoutError); ok { // matches DeadlineExceeded already
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
