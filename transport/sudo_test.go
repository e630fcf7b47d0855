package transport_test

import "context"

// password answers the question for one.
func password(p string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return p, nil }
}
