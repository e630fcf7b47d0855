package cluster

import (
	"time"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/host"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/wire"
)

// progress is what the supervisor tells who started it.
type progress struct {
	Line    string        `json:",omitempty"` // what it does now
	Ready   bool          `json:",omitempty"`
	Failure *wire.Failure `json:",omitempty"`
}

// request is what a supervisor is asked over its socket; Op says what.
type request struct {
	Op      string
	Host    string        `json:",omitempty"`
	Fault   Fault         `json:",omitempty"`
	Network string        `json:",omitempty"`
	Address string        `json:",omitempty"`
	Timeout time.Duration `json:",omitempty"`
}

const (
	opStatus   = "status"
	opDetach   = "detach"   // live on when who started the sandbox is gone
	opDown     = "down"     // end
	opInit     = "init"     // a connection to a host's init, as a file
	opNetns    = "netns"    // the operator's side, as a file
	opDial     = "dial"     // a connection from the operator's side, as a file
	opFault    = "fault"    // break or mend a host
	opSnapshot = "snapshot" // the files of a host
	opCommands = "commands" // what a host was told over SSH
)

type reply struct {
	Status   *Status        `json:",omitempty"`
	Snapshot host.Snapshot  `json:",omitempty"`
	Commands []host.Command `json:",omitempty"`
	Failure  *wire.Failure  `json:",omitempty"`
}

// Status is what a sandbox is and how it is.
type Status struct {
	Dir     string
	Ready   bool // the cluster is up, not only its hosts
	Started time.Time
	SSH     string
	Hosts   []HostStatus
}

// HostStatus is how one host is.
type HostStatus struct {
	Plan
	MachineID string
	Up        bool
	Cut       bool // its cables are out
}

// Fault is something that happens to a host.
type Fault string

// The faults there are.
const (
	Kill   Fault = "kill"   // as by a power cut; the host stays down until Start or Reboot
	Start  Fault = "start"  // a host that is down is switched on
	Reboot Fault = "reboot" // services are stopped, the host starts again
	Cut    Fault = "cut"    // its cables are taken out
	Heal   Fault = "heal"   // and put in again
)

// Faults lists every fault, in the order in which they are told to people.
func Faults() []Fault { return []Fault{Kill, Start, Reboot, Cut, Heal} }
