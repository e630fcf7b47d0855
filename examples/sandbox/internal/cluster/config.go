// Package cluster assembles a sandbox: a supervisor that holds the network, the hosts and the
// cluster on them, and the socket by which everything outside it is served.
package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/host"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/network"
)

// Config is a sandbox to make. Its zero value is one controller alone.
type Config struct {
	Dir         string                // state directory; see StateDir
	Programs    map[string]string     // the sandbox's programs on this machine, by name
	Controllers int                   // 0 means 1
	Spare       int                   // hosts that are reached directly and belong to no cluster
	Bastion     bool                  // the bastion, and h4 behind it
	SSH         string                // host.OpenSSH or host.Builtin; empty takes OpenSSH where the machine has it
	Shapes      map[string]host.Shape // what hosts pass for, by name
	HostsOnly   bool                  // no cluster: the controllers are plain hosts
}

// MaxSpare is how many spare hosts there may be.
const MaxSpare = 20

// Role is what a host of the sandbox is there for.
type Role string

// The roles of hosts.
const (
	Controller Role = "controller"
	Spare      Role = "spare"
	Jump       Role = "bastion"
)

// Plan is a host as it is laid out: what it is for and where it stands.
type Plan struct {
	Name    string
	Role    Role
	Address string // the one by which it is reached
	Via     string // name of the host through which it is reached, empty for directly
	Place   network.Place
	Forward bool
}

// Validate says everything that is wrong with a configuration.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("sandbox: "+format, args...)) }
	if c.Dir == "" {
		bad("no state directory")
	}
	if c.Controllers < 0 || c.Controllers > 1 {
		bad("%d controllers: only a cluster of one can be made as yet", c.Controllers)
	}
	if c.Spare < 0 || c.Spare > MaxSpare {
		bad("%d spare hosts: want 0 to %d", c.Spare, MaxSpare)
	}
	switch c.SSH {
	case "", host.Builtin:
	case host.OpenSSH:
		if host.SSHDPath() == "" {
			bad("no sshd on this machine; install it (apt-get install openssh-server) or choose %q", host.Builtin)
		}
	default:
		bad("SSH server %q: want %q or %q", c.SSH, host.OpenSSH, host.Builtin)
	}
	known := map[string]bool{}
	for _, p := range Layout(c) {
		known[p.Name] = true
	}
	for name := range c.Shapes {
		if !known[name] {
			bad("a shape for %q, which is none of its hosts", name)
		}
	}
	return errors.Join(errs...)
}

// Layout is which hosts a sandbox has and where they stand. The addresses are the same in every
// sandbox.
func Layout(c Config) []Plan {
	back := network.Route{To: network.Inside, Via: network.Bastion}
	front := func(name string, role Role, last int) Plan {
		p := Plan{Name: name, Role: role, Address: fmt.Sprintf("10.99.0.%d", last)}
		p.Place.Addresses = []string{p.Address}
		if c.Bastion {
			p.Place.Routes = []network.Route{back}
		}
		return p
	}
	var out []Plan
	for i := 1; i <= max(c.Controllers, 1); i++ {
		out = append(out, front(fmt.Sprintf("c%d", i), Controller, 10+i))
	}
	for i, n := 1, 0; n < c.Spare; i++ {
		if i == 4 {
			continue // h4 is the one behind the bastion
		}
		out = append(out, front(fmt.Sprintf("h%d", i), Spare, 20+i))
		n++
	}
	if c.Bastion {
		jump := front("bastion", Jump, 5)
		jump.Place = network.Place{Addresses: []string{network.Bastion, network.Inner}}
		jump.Forward = true
		inner := Plan{Name: "h4", Role: Spare, Address: "10.98.0.24", Via: "bastion"}
		inner.Place.Addresses = []string{inner.Address}
		inner.Place.Routes = []network.Route{{To: network.Front, Via: network.Inner}}
		out = append(out, jump, inner)
	}
	return out
}

// Offered are the hosts that hosts.yaml lists: two that are reached directly, and the one behind
// the bastion. What is left over is for trying other things.
func Offered(plans []Plan) []Plan {
	direct := 0
	return slices.DeleteFunc(slices.Clone(plans), func(p Plan) bool {
		if p.Role != Spare {
			return true
		}
		if p.Via != "" {
			return false
		}
		direct++
		return direct > 2
	})
}

// StateDir is the state directory of the sandbox of that name: MKESDK_SANDBOX_DIR where it is set,
// else a directory of that name below the user's state directory.
func StateDir(name string) (string, error) {
	if dir := os.Getenv("MKESDK_SANDBOX_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	if name == "" || name != filepath.Base(name) || strings.Trim(name, "./") == "" {
		return "", fmt.Errorf("sandbox: name %q: want a plain word", name)
	}
	base := os.Getenv("XDG_STATE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("sandbox: no home directory for its state (set MKESDK_SANDBOX_DIR): %w", err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "mkesdk", "sandbox", name), nil
}

// Files of a state directory.
const (
	HostsFile      = "hosts.yaml"
	KubeconfigFile = "kubeconfig"
	KeyFile        = "id_ed25519"
	KnownHostsFile = "known_hosts"
	// HomeDir is the home directory of what runs beside the hosts: a new sandbox has new host keys
	// at the same addresses, and the user's own files must neither refuse nor learn them.
	HomeDir    = "home"
	LogFile    = "supervisor.log"
	k0sFile    = "k0s"
	socketFile = "control.sock"
	lockFile   = "lock"
	mountDir   = "mnt" // where the supervisor, and nobody else, sees the hosts' disks
)
