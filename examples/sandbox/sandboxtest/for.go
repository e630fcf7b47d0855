package sandboxtest

import "testing"

// For is the same sandbox for a part of the test that it was made for: what goes wrong through it
// fails t. It still ends with the test that New was given.
func (c *Cluster) For(t testing.TB) *Cluster {
	part := *c
	part.t = t
	return &part
}
