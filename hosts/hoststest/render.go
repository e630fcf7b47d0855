package hoststest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mkesdk/mkesdk/transport"
)

// request takes the arguments out of the command that runs the facts script.
func request(cmd transport.Command) (marker, dataDir, kubeletRootDir string, ok bool) {
	a := cmd.Args
	if len(a) < 7 || a[1] != "-c" || !strings.HasPrefix(a[2], "# mkesdk: facts\n") {
		return "", "", "", false
	}
	return a[4], a[5], a[6], true
}

// IsFacts says whether a command runs the facts script.
func IsFacts(cmd transport.Command) bool {
	_, _, _, ok := request(cmd)
	return ok
}

// id makes a machine-id of a name.
func id(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

// bootID makes a boot-id of a name.
func bootID(name string) string {
	s := id("boot of " + name)
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// page is the output while it is written.
type page struct {
	strings.Builder
	marker string
}

func (p *page) val(name, value string) { fmt.Fprintf(p, "%s = %s %s\n", p.marker, name, value) }

// block writes a block whose lines end in line breaks.
func (p *page) block(name, status, text string) {
	fmt.Fprintf(p, "%s + %s\n%s\n%s - %s %s\n", p.marker, name, text, p.marker, name, status)
}

// lines writes a block of lines: yes if there are some.
func (p *page) lines(name string, lines []string) {
	if len(lines) == 0 {
		p.block(name, "no", "")
		return
	}
	p.block(name, "yes", strings.Join(lines, "\n")+"\n")
}

// Render returns what the facts script prints on m, framed by marker.
func (m Machine) Render(marker string) string {
	p := &page{marker: marker}
	now := time.Now
	if m.Clock != nil {
		now = m.Clock
	}
	stamp := func() string { t := now(); return fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond()) }
	fmt.Fprintf(p, "\n%s begin\n", marker)
	p.val("time", stamp())
	p.val("uid", "0")
	p.val("machine", m.Machine)
	p.val("kernel", m.Kernel)
	p.val("hostname", m.Hostname)
	p.val("boot-id", m.BootID)
	p.val("machine-id", m.MachineID)
	osRelease := "/etc/os-release"
	if _, ok := m.Files[osRelease]; !ok {
		osRelease = "/usr/lib/os-release"
	}
	if text, ok := m.Files[osRelease]; ok {
		p.block("os-release", "yes", text)
	} else {
		p.block("os-release", "no", "")
	}
	m.renderServices(p)
	m.renderK0s(p)
	m.renderMachine(p)
	m.renderNetwork(p)
	p.val("time-end", stamp())
	fmt.Fprintf(p, "%s end\n", marker)
	return p.String()
}

// renderMachine writes what the hardware and the kernel are.
func (m Machine) renderMachine(p *page) {
	p.val("cpus", strconv.Itoa(m.CPUs))
	p.block("meminfo", "yes", fmt.Sprintf("MemTotal: %d kB\nSwapTotal: %d kB\n", m.MemoryKB, m.SwapKB))
	stat := fmt.Sprintf("%d 4096 %d %d %s", m.Disk.FreeBytes/4096, m.Disk.Inodes, m.Disk.FreeInodes, m.Disk.Type)
	for _, d := range []struct{ name, dir string }{{"data", m.paths().dataDir}, {"kubelet", m.paths().kubeletRoot}, {"temp", "/tmp"}} {
		on := d.dir
		for on != "" && !m.exists(on) {
			on = on[:strings.LastIndexByte(on, '/')]
		}
		p.val(d.name+"-on", orSlash(on))
		p.val(d.name+"-stat", stat)
	}
	p.val("cgroup", map[string]string{"v2": "63677270", "v1": "1021994", "hybrid": "1021994"}[m.Cgroup])
	p.val("cgroup-unified", map[string]string{"hybrid": "63677270"}[m.Cgroup])
	controllers := ""
	if m.Cgroup == "v2" {
		controllers = m.Controllers
	}
	p.val("cgroup-controllers", controllers)
	limits := ""
	if m.MemoryMax != "" {
		limits += "memory.max " + m.MemoryMax + "\n"
	}
	if m.CPUMax != "" {
		limits += "cpu.max " + m.CPUMax + "\n"
	}
	p.block("limits", "yes", limits)
	p.val("selinux", map[string]string{"disabled": "disabled", "permissive": "enforce 0", "enforcing": "enforce 1"}[m.SELinux])
	p.val("selinux-policy", m.SELinuxPolicy)
	p.val("apparmor", map[bool]string{true: "Y", false: "N"}[m.AppArmor])
	p.val("apparmor-parser", yesNo(m.AppArmorParser))
	p.val("inotify-instances", strconv.FormatInt(m.InotifyInstances, 10))
	p.val("inotify-watches", strconv.FormatInt(m.InotifyWatches, 10))
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func orSlash(dir string) string {
	if dir == "" {
		return "/"
	}
	return dir
}

// IPAddr returns what `ip -o addr show` prints on m.
func (m Machine) IPAddr() string {
	var b strings.Builder
	for i, a := range m.Addresses {
		family := "inet"
		if strings.Contains(a.Prefix, ":") {
			family = "inet6"
		}
		fmt.Fprintf(&b, "%d: %s    %s %s scope global %s\\       valid_lft forever preferred_lft forever\n", i+1, a.Interface, family, a.Prefix, a.Interface)
	}
	return b.String()
}

// IPRoute returns what `ip -o route show default` prints on m.
func (m Machine) IPRoute() string {
	i := slices.IndexFunc(m.Addresses, func(a Address) bool { return a.Interface != "lo" })
	if m.Gateway == "" || i < 0 {
		return ""
	}
	return fmt.Sprintf("default via %s dev %s proto static \n", m.Gateway, m.Addresses[i].Interface)
}

// Sockets returns the local addresses of the listening sockets, of IPv4 and IPv6,
// as the kernel's tables have them.
func (m Machine) Sockets() (tcp, tcp6 []string) {
	for _, text := range m.Listening {
		ap, err := netip.ParseAddrPort(text)
		if err != nil {
			continue
		}
		raw := ap.Addr().AsSlice()
		word := ""
		for i := 0; i+4 <= len(raw); i += 4 {
			word += fmt.Sprintf("%08X", binary.LittleEndian.Uint32(raw[i:]))
		}
		word += fmt.Sprintf(":%04X", ap.Port())
		if ap.Addr().Is4() {
			tcp = append(tcp, word)
		} else {
			tcp6 = append(tcp6, word)
		}
	}
	return tcp, tcp6
}

func (m Machine) renderNetwork(p *page) {
	p.block("addresses", "yes", m.IPAddr())
	p.block("routes", "yes", m.IPRoute())
	p.block("routes6", "yes", "")
	tcp, tcp6 := m.Sockets()
	text := ""
	for _, line := range append(tcp, tcp6...) {
		text += line + "\n"
	}
	p.block("listening", "yes", text)
}
