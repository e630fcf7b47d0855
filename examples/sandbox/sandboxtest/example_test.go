package sandboxtest_test

import (
	"fmt"
	"testing"

	"github.com/mkesdk/mkesdk/examples/sandbox/sandboxtest"
)

// A test of a program that talks to hosts: what it did to one is seen by what changed there.
func ExampleNew() {
	test := func(t *testing.T) {
		c := sandboxtest.New(t, sandboxtest.Config{Spare: 2, HostsOnly: true})
		h := c.Host("h1")
		before := h.Snapshot()
		h.WriteFile("/etc/motd", []byte("hello\n"), 0o644)
		for _, change := range sandboxtest.Diff(before, h.Snapshot()) {
			t.Log(change)
		}
	}
	fmt.Println(test != nil) // in a _test.go: func TestIt(t *testing.T) { … }
	// Output: true
}
