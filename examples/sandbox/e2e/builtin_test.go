package e2e

import (
	"testing"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/host"
	"github.com/mkesdk/mkesdk/examples/sandbox/sandboxtest"
)

// TestBuiltinServer adds workers to hosts that run the sandbox's own SSH server, as they do on a
// machine without OpenSSH.
func TestBuiltinServer(t *testing.T) {
	if host.SSHDPath() == "" {
		t.Skip("this machine has no OpenSSH: TestSandbox runs on the built-in server")
	}
	c := sandboxtest.New(t, sandboxtest.Config{Spare: 2, Bastion: true, SSH: sandboxtest.Builtin})
	testWorkers(t, newBed(t, c, ""))
}
