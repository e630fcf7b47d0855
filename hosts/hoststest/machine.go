// Package hoststest describes a machine as a value and prints what the facts
// script would print on it.
//
// It is for tests and simulators of whoever uses package hosts: a fake connection
// that is asked for the facts of a host hands the command to [Machine.Answer]. That
// a Machine is honest is tested by running the real script on the same files.
package hoststest

import (
	"maps"
	"time"

	"github.com/mkesdk/mkesdk/transport"
)

// Machine is a host as far as the facts script looks at it. Its zero value is a
// machine of which nothing can be observed; [Ubuntu] makes one to start from.
type Machine struct {
	Hostname  string
	MachineID string
	BootID    string
	Machine   string // as `uname -m` prints it: "x86_64"
	Kernel    string // as `uname -r` prints it
	Init      string // "systemd", "openrc", or the name of process 1

	CPUs     int
	MemoryKB int64
	SwapKB   int64
	// MemoryMax and CPUMax are limits of a cgroup v2 around the script, as the files
	// memory.max and cpu.max hold them; empty means no such file.
	MemoryMax string
	CPUMax    string

	Addresses []Address
	Gateway   string   // of the default route, on the interface of the first address; empty for no route
	Listening []string // "0.0.0.0:22", "[::]:22"

	Disk        Disk   // every directory is on it
	Cgroup      string // "v1", "v2" or "hybrid"; empty for none
	Controllers string // of cgroup v2, separated by spaces

	SELinux        string // "disabled", "permissive" or "enforcing"
	SELinuxPolicy  string
	AppArmor       bool
	AppArmorParser bool

	InotifyInstances int64
	InotifyWatches   int64

	// Clock tells the host's time; nil means time.Now.
	Clock func() time.Time

	// Services are the states of systemd units, by name with the ending: "active",
	// "failed", … A unit that is not here is inactive. Those of k0s are loaded if
	// they have a file, the others if they are here. Under OpenRC they are exit
	// statuses of rc-service: "0", "3", "32".
	Services map[string]string

	// K0sVersion is what the k0s binary prints, if there is a file where it is looked
	// for. Empty: the file there does not run.
	K0sVersion string
	// StatusRole is the role that `k0s status` answers, "controller" or "worker".
	// Empty: it does not answer.
	StatusRole string

	// Files are the files of the host that matter, by absolute path: os-release, unit
	// files, the k0s binary, what is in the data directory. A path that ends in a
	// slash is an empty directory.
	Files map[string]string
	// Mounts are the mount points besides those of the system.
	Mounts []string

	// DataDir and KubeletRootDir are what the command asked for; empty means the
	// defaults. Answer sets them.
	DataDir        string
	KubeletRootDir string
}

// Address is one address of a machine.
type Address struct {
	Interface string
	Prefix    string // "10.0.0.1/24"
}

// Disk is a file system.
type Disk struct {
	Type       string // as stat names it: "ext2/ext3"
	FreeBytes  int64
	Inodes     int64
	FreeInodes int64
}

// OSUbuntu is the os-release of Ubuntu 24.04, as far as it matters.
const OSUbuntu = `PRETTY_NAME="Ubuntu 24.04.2 LTS"
NAME="Ubuntu"
VERSION_ID="24.04"
ID=ubuntu
ID_LIKE=debian
`

// Ubuntu returns a clean machine that meets every bound of either role: no k0s, one
// address in a /24 on eth0, a machine-id and a boot-id made of its name.
func Ubuntu(name, address string) Machine {
	return Machine{
		Hostname: name, MachineID: id(name), BootID: bootID(name),
		Machine: "x86_64", Kernel: "6.8.0-60-generic", Init: "systemd",
		CPUs: 8, MemoryKB: 32 << 20,
		Addresses: []Address{{"lo", "127.0.0.1/8"}, {"eth0", address + "/24"}},
		Listening: []string{"0.0.0.0:22"},
		Disk:      Disk{Type: "ext2/ext3", FreeBytes: 100 << 30, Inodes: 6 << 20, FreeInodes: 5 << 20},
		Cgroup:    "v2", Controllers: "cpuset cpu io memory hugetlb pids rdma misc",
		SELinux: "disabled", AppArmor: true, AppArmorParser: true,
		InotifyInstances: 1024, InotifyWatches: 524288,
		Services: map[string]string{},
		Files:    map[string]string{"/etc/os-release": OSUbuntu},
	}
}

// WithK0s returns a copy of m on which the k0s binary of that version is
// installed, and nothing else of k0s.
func (m Machine) WithK0s(version string) Machine {
	m = m.clone()
	m.K0sVersion = version
	m.Files["/usr/local/bin/k0s"] = "binary"
	return m
}

// WithService returns a copy of m on which k0s is installed as a service, role
// "controller" or "worker", in that systemd state, started with args after
// the role.
func (m Machine) WithService(role, state string, args ...string) Machine {
	m = m.clone()
	line := "/usr/local/bin/k0s " + role
	for _, a := range args {
		line += " " + a
	}
	m.Files["/etc/systemd/system/k0s"+role+".service"] = "[Unit]\nDescription=k0s - Zero Friction Kubernetes\n[Service]\nExecStart=" + line + "\nRestart=always\n"
	m.Services["k0s"+role+".service"] = state
	return m
}

// WithFile returns a copy of m that has the file as well.
func (m Machine) WithFile(path, content string) Machine {
	m = m.clone()
	m.Files[path] = content
	return m
}

func (m Machine) clone() Machine {
	files, services := map[string]string{}, map[string]string{}
	maps.Copy(files, m.Files)
	maps.Copy(services, m.Services)
	m.Files, m.Services = files, services
	return m
}

// Answer writes what the facts script prints on m to the command's output, if that
// is what the command runs; else it returns false.
func (m Machine) Answer(cmd transport.Command) (ok bool, err error) {
	marker, dataDir, kubeletRootDir, ok := request(cmd)
	if !ok {
		return false, nil
	}
	m.DataDir, m.KubeletRootDir = dataDir, kubeletRootDir
	if cmd.Stdout != nil {
		_, err = cmd.Stdout.Write([]byte(m.Render(marker)))
	}
	return true, err
}
