package k0s

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/control"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/tools"
)

// inNetwork runs the calling test again inside a network namespace that has the addresses, and
// reports there. It gives false where the test is to return because the other run did the work.
func inNetwork(t *testing.T, addresses ...string) bool {
	t.Helper()
	if os.Getenv(envInside) == t.Name() {
		for _, a := range append([]string{"127.0.0.1/8"}, addresses...) {
			addAddress(t, a)
		}
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("hosts made of namespaces need root")
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), envInside+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	t.Logf("inside:\n%s", out)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(out, []byte("--- SKIP")) {
		t.Skip("skipped inside, see above")
	}
	return false
}

func addAddress(t *testing.T, address string) {
	t.Helper()
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	a, err := netlink.ParseAddr(address)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(netlink.LinkSetUp(lo), ignoreExists(netlink.AddrAdd(lo, a))); err != nil {
		t.Fatal(err)
	}
}

func ignoreExists(err error) error {
	if errors.Is(err, syscall.EEXIST) {
		return nil
	}
	return err
}

// needTools makes sure that there is an API server to run: the one that the environment names, or
// the sandbox's own, which is built on first use.
func needTools(t *testing.T) {
	t.Helper()
	if os.Getenv(control.EnvTools) != "" || os.Geteuid() != 0 {
		return
	}
	programs, err := tools.Builder{}.Kubernetes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(control.EnvTools, filepath.Dir(programs["kube-apiserver"]))
}
