package kubelet

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// systemInfo is what a Node says about its machine. Hosts of the sandbox share the machine's
// firmware, so the system's UUID is made of the machine-id, as kubelets do where there is none.
func systemInfo(version string) corev1.NodeSystemInfo {
	id := firstLine("/etc/machine-id")
	var u unix.Utsname
	kernel := ""
	if unix.Uname(&u) == nil {
		kernel = unix.ByteSliceToString(u.Release[:])
	}
	return corev1.NodeSystemInfo{
		MachineID: id, SystemUUID: uuid(id), BootID: firstLine("/proc/sys/kernel/random/boot_id"),
		KernelVersion: kernel, OSImage: prettyName(), ContainerRuntimeVersion: "containerd://2.3.3",
		KubeletVersion: version, OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
	}
}

// uuid writes 32 hexadecimal digits in the form of a UUID; anything else stays as it is.
func uuid(id string) string {
	if len(id) != 32 {
		return id
	}
	return strings.Join([]string{id[:8], id[8:12], id[12:16], id[16:20], id[20:]}, "-")
}

func firstLine(name string) string {
	data, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(line)
}

func prettyName() string {
	for _, name := range []string{"/etc/os-release", "/usr/lib/os-release"} {
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for line := range strings.SplitSeq(string(data), "\n") {
			if v, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
				return strings.Trim(v, `"'`)
			}
		}
	}
	return "Linux"
}

// memory is the host's memory in bytes, 0 if it cannot be read.
func memory() int64 {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for in := bufio.NewScanner(bytes.NewReader(data)); in.Scan(); {
		if f := strings.Fields(in.Text()); len(f) >= 2 && f[0] == "MemTotal:" {
			kib, _ := strconv.ParseInt(f[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// storage is the size in bytes of the file system a directory is on.
func storage(dir string) int64 {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0
	}
	return int64(s.Blocks) * s.Bsize
}

// nodeIP is the address a node reports: the one wanted, which must be the host's, or its first.
func nodeIP(want string) (string, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	var own []netip.Addr
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			own = append(own, p.Addr())
		}
	}
	return chooseIP(own, want)
}

func chooseIP(own []netip.Addr, want string) (string, error) {
	if want != "" {
		ip, err := netip.ParseAddr(want)
		if err != nil {
			return "", fmt.Errorf("node IP %q: %w", want, err)
		}
		for _, a := range own {
			if a.Unmap() == ip.Unmap() {
				return ip.String(), nil
			}
		}
		return "", fmt.Errorf("node IP %q not found in the host's network interfaces", want)
	}
	for _, a := range own {
		if a.Is4() && a.IsGlobalUnicast() {
			return a.String(), nil
		}
	}
	return "", fmt.Errorf("the host has no address to report, %d on its interfaces", len(own))
}
