package hosts

import (
	"net/netip"
	"time"
)

// Facts are what was found on a host, in one round trip, by [Collect]. Whatever
// could not be observed is the zero value of its field: an empty string, a zero
// number, an [Unknown].
type Facts struct {
	// Hostname is the kernel's host name in full, NodeName the same in lower case:
	// the name of the host's Node.
	Hostname string `json:"hostname"`
	NodeName string `json:"nodeName"`
	// MachineID and BootID identify the installation and its present boot.
	MachineID string `json:"machineID"`
	BootID    string `json:"bootID"`

	OS     OS     `json:"os"`
	Arch   string `json:"arch"` // as Go names it: amd64, arm64, …
	Kernel string `json:"kernel"`
	Init   Init   `json:"init"`

	// CPUs are those the host may use, a cgroup's quota counted; not always whole.
	CPUs float64 `json:"cpus"`
	// MemoryBytes is the least of the memory and the tightest cgroup limit.
	MemoryBytes int64 `json:"memoryBytes"`
	// SwapBytes is the swap that is on; negative means not known.
	SwapBytes int64 `json:"swapBytes"`

	Addresses []Address `json:"addresses"`
	Routes    []Route   `json:"routes"` // the default routes
	// Listening are the addresses and ports that something listens on by TCP; it
	// tells nothing unless PortsKnown is Yes.
	Listening  []netip.AddrPort `json:"listening"`
	PortsKnown Tri              `json:"portsKnown"`

	// DataDir and KubeletRoot are those in the service's command line if k0s is
	// installed, else those asked for, else k0s's own defaults.
	DataDir     string `json:"dataDir"`
	KubeletRoot string `json:"kubeletRoot"`
	DataDisk    Disk   `json:"dataDisk"`    // below DataDir
	KubeletDisk Disk   `json:"kubeletDisk"` // below KubeletRoot
	TempDisk    Disk   `json:"tempDisk"`    // below /tmp

	Cgroup   Cgroup   `json:"cgroup"`
	SELinux  SELinux  `json:"selinux"`
	AppArmor AppArmor `json:"appArmor"`
	Inotify  Inotify  `json:"inotify"`
	Clock    Clock    `json:"clock"`

	Firewalld    Tri `json:"firewalld"`    // the service is active
	NMCloudSetup Tri `json:"nmCloudSetup"` // the service or its timer is active

	K0s       K0s       `json:"k0s"`
	CA        CA        `json:"ca"`
	Leftovers Leftovers `json:"leftovers"`
}

// OS is what os-release says of a distribution.
type OS struct {
	ID        string   `json:"id"`        // "ubuntu", "rhel"; empty means not known
	VersionID string   `json:"versionID"` // "24.04"; a rolling distribution has none
	IDLike    []string `json:"idLike,omitempty"`
	Name      string   `json:"name"` // for people
}

// Init is what starts the services of a host.
type Init string

// The init systems that k0s can be driven under. Any other is named as its
// process is, and refused.
const (
	Systemd Init = "systemd"
	OpenRC  Init = "openrc"
)

// Address is one address of a host.
type Address struct {
	Interface string       `json:"interface"` // empty means that it could not be told
	Prefix    netip.Prefix `json:"prefix"`    // the address itself, with the length of its network
}

// Route is a default route.
type Route struct {
	Interface string     `json:"interface"`
	Gateway   netip.Addr `json:"gateway"` // the zero Addr if there is none
}

// Disk is the file system that a directory is on, or will be once it is made.
type Disk struct {
	On         string `json:"on"`   // the nearest directory that exists
	Type       string `json:"type"` // as stat names it: "ext2/ext3", "xfs", "overlayfs"; empty means not known
	FreeBytes  int64  `json:"freeBytes"`
	Inodes     int64  `json:"inodes"` // 0: the file system does not count them
	FreeInodes int64  `json:"freeInodes"`
}

// Cgroup is what a host has of control groups.
type Cgroup struct {
	// Version is 2 only where /sys/fs/cgroup itself is cgroup2. 0 means not known.
	Version int `json:"version"`
	// Hybrid says that there is a cgroup2 beside version 1. It counts as 1.
	Hybrid bool `json:"hybrid,omitempty"`
	// Controllers are those of version 2.
	Controllers []string `json:"controllers,omitempty"`
}

// SELinux is its mode, "enforcing", "permissive" or "disabled", and its policy, as
// "targeted". An empty mode means not known.
type SELinux struct {
	Mode   string `json:"mode"`
	Policy string `json:"policy,omitempty"`
}

// AppArmor says whether the kernel has it on, and whether its parser is there,
// without which no container starts where it is on.
type AppArmor struct {
	Enabled Tri `json:"enabled"`
	Parser  Tri `json:"parser"`
}

// Inotify are the limits for each user; 0 means not known.
type Inotify struct {
	Instances int64 `json:"instances"`
	Watches   int64 `json:"watches"`
}

// Clock compares the host's clock with the caller's. Skew is positive if the
// host's is ahead; the truth is within Uncertainty, half of what the round trip
// took. Both tell nothing unless Known is Yes.
type Clock struct {
	Known       Tri           `json:"known"`
	Skew        time.Duration `json:"skewNanos"`
	Uncertainty time.Duration `json:"uncertaintyNanos"`
}

// K0s is what was seen of k0s itself.
type K0s struct {
	// Path is where the service's binary is, else where MKE puts it.
	Path string `json:"path"`
	// Binary: there is a file at Path and `k0s version` runs. No includes a file
	// that does not run, such as the first half of one.
	Binary Tri `json:"binary"`
	// Version is what `k0s version` printed.
	Version string `json:"version,omitempty"`

	// Controller and Worker are the two services that k0s installs.
	Controller Service `json:"controller"`
	Worker     Service `json:"worker"`

	// Answers: `k0s status` answered within its own time-out; Role is what it said,
	// "controller" or "worker".
	Answers Tri    `json:"answers"`
	Role    string `json:"role,omitempty"`

	// KubeletConf: <data-dir>/kubelet.conf is there and not empty.
	KubeletConf Tri `json:"kubeletConf"`
	// TokenFile is the join token file that the service names, else where MKE puts
	// it; TokenLeft says whether it is there. What is in it never leaves the host.
	TokenFile string `json:"tokenFile"`
	TokenLeft Tri    `json:"tokenLeft"`
}

// Service is a service of a host's init system.
type Service struct {
	State Unit `json:"state"`
	// File is its unit file or script; empty if there is none.
	File string `json:"file,omitempty"`
	// Args are its command line, the program first.
	Args []string `json:"args,omitempty"`
	// Detail is the state in the init system's own words, for people.
	Detail string `json:"detail,omitempty"`
}

// CA is the cluster CA found on a host.
type CA struct {
	// Found is No if there is no trace of one, and Unknown if something is there
	// that could not be read, or two that differ.
	Found Tri `json:"found"`
	// Fingerprint is set if Found is Yes, see [Fingerprint].
	Fingerprint string `json:"fingerprint,omitempty"`
	// Others are further fingerprints, if several differ.
	Others []string `json:"others,omitempty"`
	// Source is the file that it was found in.
	Source string `json:"source,omitempty"`
	// Why says what could not be read.
	Why string `json:"why,omitempty"`
}

// Leftovers are what an earlier k0s has left. Each field says whether there is
// some of it; Paths are some of them, for people.
type Leftovers struct {
	DataDir     Tri      `json:"dataDir"`     // content of the data directory, but for images put there beforehand
	EtcdCA      Tri      `json:"etcdCA"`      // <data-dir>/pki/etcd/*
	EtcdData    Tri      `json:"etcdData"`    // <data-dir>/etcd/member
	KubeletRoot Tri      `json:"kubeletRoot"` // content of the kubelet's root directory
	RunDir      Tri      `json:"runDir"`      // content of /run/k0s
	Mounts      Tri      `json:"mounts"`      // mounts below one of these
	CNI         Tri      `json:"cni"`         // CNI configuration or state; k0s reset leaves it, so it decides nothing
	Paths       []string `json:"paths,omitempty"`
}
