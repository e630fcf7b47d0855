package hosts

// Unit is what was seen of the k0s service on a host.
type Unit uint8

// The states of a service. The zero value is UnitUnknown.
const (
	UnitUnknown Unit = iota
	UnitNone         // neither k0scontroller nor k0sworker is installed
	UnitStopped
	UnitFailed
	UnitActive // running, or on its way up
)

// String returns "unknown", "none", "stopped", "failed" or "active".
func (u Unit) String() string {
	switch u {
	case UnitNone:
		return "none"
	case UnitStopped:
		return "stopped"
	case UnitFailed:
		return "failed"
	case UnitActive:
		return "active"
	}
	return "unknown"
}

// MarshalText writes u as String does.
func (u Unit) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// Membership says which cluster the certificate authority found on a host is of.
type Membership uint8

// The values of a Membership. The zero value is UnknownCluster.
const (
	UnknownCluster Membership = iota
	NoCluster                 // no trace of a cluster CA: a finding, not an error
	ThisCluster               // the CA of the running cluster
	OtherCluster              // the CA of another cluster
)

// String returns "unknown", "none", "this" or "other".
func (m Membership) String() string {
	switch m {
	case NoCluster:
		return "none"
	case ThisCluster:
		return "this"
	case OtherCluster:
		return "other"
	}
	return "unknown"
}

// MarshalText writes m as String does.
func (m Membership) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// NodeState is what was seen of a host's node in the cluster. While Registered is
// No, the other fields are No as well and say nothing.
type NodeState struct {
	Registered  Tri `json:"registered"`  // a Node object exists under the host's node name
	Ready       Tri `json:"ready"`       // and reports Ready
	Cordoned    Tri `json:"cordoned"`    // and is unschedulable
	SameMachine Tri `json:"sameMachine"` // and was made by this very machine
}

// State is what was observed of a host and its node: what [Match] decides on. The
// zero State is unknown in every respect and is refused.
type State struct {
	// Binary: the k0s binary is there and runs.
	Binary Tri `json:"binary"`
	// Unit is the state of the k0s service.
	Unit Unit `json:"unit"`
	// InstalledFor is the role that the service was installed for, empty if there
	// is no service or it could not be told.
	InstalledFor Role `json:"installedFor,omitempty"`
	// Answers: k0s status answered in time.
	Answers Tri `json:"answers"`
	// CA is whose cluster CA was found.
	CA Membership `json:"ca"`
	// Leftovers: something of an earlier k0s is left that a clean host does not
	// have. It tells nothing while a service is installed.
	Leftovers Tri `json:"leftovers"`
	// EtcdLeft: an etcd database or an etcd CA is there.
	EtcdLeft Tri `json:"etcdLeft"`
	// KubeletConf: <data-dir>/kubelet.conf exists, so no join token is needed any
	// more.
	KubeletConf Tri `json:"kubeletConf"`
	// Node is the host's node in the cluster.
	Node NodeState `json:"node"`
	// Why says in words, one sentence each, what could not be observed and what is
	// odd about what was.
	Why []string `json:"why,omitempty"`
}

// ClusterView is what [Observe] needs to know of the running cluster.
type ClusterView struct {
	// CAFingerprint is the cluster CA's, as [Fingerprint] makes it. Empty means not
	// known: then no host belongs to this cluster.
	CAFingerprint string
	// Node is the Node object under the host's node name; nil means that there is
	// none.
	Node *Node
	// NodeErr is why Node could not be looked up; nil means that it was.
	NodeErr error
}

// Node is what is known of a Node object.
type Node struct {
	Name      string   `json:"name"`
	Ready     bool     `json:"ready"`
	Cordoned  bool     `json:"cordoned"`
	MachineID string   `json:"machineID,omitempty"` // status.nodeInfo.machineID
	BootID    string   `json:"bootID,omitempty"`    // status.nodeInfo.bootID
	Addresses []string `json:"addresses,omitempty"` // the IP addresses of status.addresses
}
