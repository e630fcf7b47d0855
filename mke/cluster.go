package mke

import (
	"context"
	"io"
	"net/netip"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/mkesdk/mkesdk/etcdverify"
	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/transport"
)

// Cluster is the running cluster, as far as the operations need it. Each field
// is a view of a few methods: [Connect] gives the real ones, and a test fakes
// those that it is about.
type Cluster struct {
	Nodes     Nodes
	Config    Config
	Etcd      Etcd
	Leases    Leases
	Artifacts Artifacts
	SSH       Dialer

	// CA is the PEM bundle that the connection to the API server trusts. The
	// helper's cluster CA must be in it: a kubeconfig of one cluster with the
	// hosts of another is refused with ErrOtherCluster.
	CA []byte

	close func() error
}

// Close closes what [Connect] opened. It may be called on a Cluster that was
// made by hand, and then does nothing.
func (c *Cluster) Close() error {
	if c.close == nil {
		return nil
	}
	return c.close()
}

// A Dialer connects to hosts. [SSH] makes one.
type Dialer interface {
	Dial(ctx context.Context, h hosts.SSH) (transport.Conn, error)
}

// Nodes are the cluster's Node objects.
type Nodes interface {
	// List returns all nodes, read past every cache.
	List(ctx context.Context) ([]Node, error)
	// Get returns the node of that name, or an error matching ErrNotFound.
	Get(ctx context.Context, name string) (Node, error)
	// Patch changes what p names and nothing else. If p.UID is set and the node
	// has another one, the error matches ErrChanged and nothing is changed.
	Patch(ctx context.Context, name string, p NodePatch) error
}

// Node is what the operations read of a Node object.
type Node struct {
	Name      string
	UID       string
	MachineID string // status.nodeInfo.machineID
	BootID    string // status.nodeInfo.bootID
	// Addresses are all its addresses: host names and IPs.
	Addresses   []string
	Ready       bool
	ReadyReason string // why it is not, in the words of the node's condition
	Cordoned    bool
	Deleting    bool
	Controller  bool   // has the control plane label
	Kubelet     string // its kubelet's version
	Labels      map[string]string
	Annotations map[string]string
}

// NodePatch is a change of a Node object. A nil value of a map removes the key.
type NodePatch struct {
	UID         string
	Labels      map[string]*string
	Annotations map[string]*string
	Cordoned    *bool
}

// Config is the MkeConfig kept in the cluster.
type Config interface {
	// Get reads the MkeConfig. The error matches ErrNotFound if the cluster has
	// none, which is what a cluster that is not MKE 4 looks like.
	Get(ctx context.Context) (MkeConfig, error)
	// Busy says which upgrade, apply or reset is in progress, one sentence
	// each, from the conditions of MkeConfig and MkeRelease and from autopilot
	// plans. Empty means none.
	Busy(ctx context.Context) ([]string, error)
	// AddHosts makes spec.hosts list every one of specs, keyed by SSH address,
	// keeps every other entry and every unknown field as it is, and retries on
	// conflict. It returns the addresses whose entry was written; none, and no
	// write, if all are listed identically. guard is called right before each
	// write and stops it by returning an error.
	AddHosts(ctx context.Context, specs []hosts.Spec, guard func(context.Context) error) (written []string, err error)
}

// MkeConfig is what the operations read of the MkeConfig object.
type MkeConfig struct {
	Version string
	// Hosts are the entries of spec.hosts, in order.
	Hosts []hosts.Spec
	// DataDir is k0s's data directory on the hosts of this cluster: /var/lib/k0s
	// unless configured.
	DataDir string
	// ImageRegistry is where images and the k0s binary come from.
	ImageRegistry Registry
	// ExternalCloud reports that a cloud provider outside the kubelet is configured.
	ExternalCloud bool
}

// Registry is how MkeConfig names a registry.
type Registry struct {
	URL    string // host[:port]/path; http:// only if it was written so
	CAData string // PEM; adds to the system's roots
	Secret string // name of the credentials Secret in namespace mke; "" for anonymous
}

// Etcd is the cluster's etcd, read through a control plane host. Nothing here
// adds or removes a member.
type Etcd interface {
	// Evidence asks the etcd member on the host behind c, through c's own
	// connection, as root: the linearizable member list, its status, one linearizable read, and
	// the alarms. dataDir is k0s's data directory there. What could not be
	// asked is said in the evidence; an error means that nothing could.
	Evidence(ctx context.Context, c transport.Conn, dataDir string) (etcdverify.Evidence, error)
}

// Leases are the coordination.k8s.io/v1 Leases in namespace mke. The errors are
// those of the Kubernetes API (IsNotFound, IsConflict, IsAlreadyExists of
// k8s.io/apimachinery/pkg/api/errors); Update and Delete hold to the
// resourceVersion they are given.
type Leases interface {
	Get(ctx context.Context, name string) (*coordinationv1.Lease, error)
	// List returns those with the lock label, by a quorum read.
	List(ctx context.Context) ([]coordinationv1.Lease, error)
	Create(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error)
	Update(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error)
	// Delete deletes the lease if it has that uid and resourceVersion still.
	Delete(ctx context.Context, name, uid, resourceVersion string) error
}

// Artifacts are what a registry holds.
type Artifacts interface {
	// K0s resolves the k0s binary of a version for linux on that architecture
	// ("amd64"). The error matches *registry.MissingError if there is none.
	K0s(ctx context.Context, r Registry, version, arch string) (Binary, error)
}

// Binary is a program that a registry holds.
type Binary struct {
	Digest string // of the program itself, "sha256:" and 64 hex digits
	Size   int64  // bytes
	// Open reads the program. Reading it to the end proves the digest: the last
	// Read returns an error instead of io.EOF if it is another.
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// LockInfo is what a lock says of its holder.
type LockInfo struct {
	// Lease is the name of the lease: mke-operation, or mke-node-<node>.
	Lease     string    `json:"lease"`
	Operation string    `json:"operation"`
	State     string    `json:"state,omitempty"` // "adding" or "removing"
	Scope     string    `json:"scope,omitempty"`
	Hosts     []string  `json:"hosts,omitempty"`
	Client    string    `json:"client"` // user@host and pid
	Started   time.Time `json:"started"`
	Renewed   time.Time `json:"renewed"`
	Expires   time.Time `json:"expires"`
	// Stale reports that it has expired by the store's clock, as far as one
	// look can tell.
	Stale bool `json:"stale"`
}

// addressKey returns what two spellings of one address have in common.
func addressKey(address string) string {
	if a, err := netip.ParseAddr(strings.Trim(address, "[]")); err == nil {
		return a.Unmap().String()
	}
	return strings.ToLower(strings.TrimSuffix(address, "."))
}
