// Package hosts says what a host is: what its file entry asks for, what was
// found on it, and which row of the scenario matrix it falls under.
//
// Reading and deciding are kept apart. [Load] reads a hosts.yaml. [Collect] runs
// one read-only script on a host and returns [Facts]. Everything after that is a
// pure function over values: [Observe] turns facts and a view of the cluster into
// a [State], [Match] finds the row of the matrix, [Check] holds the facts against
// the pre-flight bounds.
//
// Whatever can fail to be observed is three-valued, a [Tri]; its zero value is
// [Unknown], and nothing unknown ever lets an operation proceed.
package hosts

import (
	"errors"
	"fmt"
	"slices"
)

// Role is the part that a host plays in the cluster.
type Role string

// The two roles that there are. MKE 4 has no controller without a worker.
const (
	Worker           Role = "worker"
	ControllerWorker Role = "controller+worker"
)

// Roles returns every role, in the order of the documentation.
func Roles() []Role { return []Role{Worker, ControllerWorker} }

// Valid says whether r is one of the roles that there are. The zero Role is not.
func (r Role) Valid() bool { return slices.Contains(Roles(), r) }

// Op is what is to be done with a host.
type Op string

// The two operations.
const (
	Add    Op = "add"
	Remove Op = "remove"
)

// Tri is an observation that can fail to be made. The zero value is [Unknown].
type Tri uint8

// The values of a Tri.
const (
	Unknown Tri = iota
	No
	Yes
)

// TriOf returns Yes for true and No for false.
func TriOf(b bool) Tri {
	if b {
		return Yes
	}
	return No
}

// String returns "unknown", "no" or "yes".
func (t Tri) String() string {
	switch t {
	case Yes:
		return "yes"
	case No:
		return "no"
	}
	return "unknown"
}

// MarshalText writes t as String does.
func (t Tri) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what MarshalText writes, and nothing else.
func (t *Tri) UnmarshalText(text []byte) error {
	switch string(text) {
	case "yes":
		*t = Yes
	case "no":
		*t = No
	case "unknown":
		*t = Unknown
	default:
		return fmt.Errorf("hosts: %q is none of yes, no, unknown", text)
	}
	return nil
}

// SSH says how a host is reached. It is plain data; the fields are named as in
// hosts.yaml and in MkeConfig.
type SSH struct {
	// Address is an IP address without brackets or a host name, never with a port.
	Address string `json:"address"`
	// User is the login name; empty means root.
	User string `json:"user,omitempty"`
	// KeyPath is the private key on the calling machine, as it was written: a
	// leading ~ is not expanded. Empty means the keys of the agent.
	KeyPath string `json:"keyPath,omitempty"`
	// Port is 1 to 65535; 0 means 22.
	Port int `json:"port,omitempty"`
	// Bastion is the hop in front of the host, or nil. It may have its own.
	Bastion *SSH `json:"bastion,omitempty"`
}

// The defaults that a hosts.yaml may leave out.
const (
	DefaultUser = "root"
	DefaultPort = 22
)

// WithDefaults returns a copy of s, and of every bastion in front of it, with the
// user and the port filled in where they are missing.
func (s SSH) WithDefaults() SSH {
	if s.User == "" {
		s.User = DefaultUser
	}
	if s.Port == 0 {
		s.Port = DefaultPort
	}
	if s.Bastion != nil {
		b := s.Bastion.WithDefaults()
		s.Bastion = &b
	}
	return s
}

// Spec is one entry of hosts.yaml, or of MkeConfig's spec.hosts.
type Spec struct {
	// Role is required.
	Role Role `json:"role"`
	// SSH is how the host is reached; its Address is required, and names the host.
	SSH SSH `json:"ssh"`
	// InstallFlags are given to k0s install besides the software's own, see
	// [InstallArgs].
	InstallFlags []string `json:"installFlags,omitempty"`
	// PrivateAddress is the host's own address towards the cluster. At most one of
	// it and PrivateInterface is set.
	PrivateAddress string `json:"privateAddress,omitempty"`
	// PrivateInterface names the network interface that has that address.
	PrivateInterface string `json:"privateInterface,omitempty"`
}

// Validate says everything that is wrong with s, joined. A Spec that [Load]
// returned is valid.
func (s Spec) Validate() error {
	var errs []error
	if !s.Role.Valid() {
		errs = append(errs, fmt.Errorf("role %q: want %s or %s", s.Role, Worker, ControllerWorker))
	}
	name := "ssh"
	for hop, n := &s.SSH, 0; hop != nil; hop, n = hop.Bastion, n+1 {
		if n > maxHops {
			errs = append(errs, fmt.Errorf("ssh: more than %d bastions in a row", maxHops))
			break
		}
		if host, port, err := splitAddress(hop.Address); err != nil {
			errs = append(errs, fmt.Errorf("%s.address: %w", name, err))
		} else if host != hop.Address || port != 0 {
			errs = append(errs, fmt.Errorf("%s.address: want %q as %q, its port apart", name, hop.Address, host))
		}
		if hop.Port < 0 || hop.Port > 65535 {
			errs = append(errs, fmt.Errorf("%s.port: %d is no port: want a number from 1 to 65535", name, hop.Port))
		}
		name += ".bastion"
	}
	if s.PrivateAddress != "" && s.PrivateInterface != "" {
		errs = append(errs, fmt.Errorf("both privateAddress %s and privateInterface %s are given: want only one of them", s.PrivateAddress, s.PrivateInterface))
	}
	if s.PrivateAddress != "" {
		if _, err := parseIP(s.PrivateAddress); err != nil {
			errs = append(errs, fmt.Errorf("privateAddress: %w", err))
		}
	}
	return errors.Join(append(errs, CheckInstallFlags(s))...)
}
