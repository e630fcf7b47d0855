package host

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// adminID is the user and group number of admin.
const adminID = 1000

// ubuntu is the os-release of Ubuntu 24.04, as the base-files package has it.
const ubuntu = `PRETTY_NAME="Ubuntu 24.04.3 LTS"
NAME="Ubuntu"
VERSION_ID="24.04"
VERSION="24.04.3 LTS (Noble Numbat)"
VERSION_CODENAME=noble
ID=ubuntu
ID_LIKE=debian
HOME_URL="https://www.ubuntu.com/"
SUPPORT_URL="https://help.ubuntu.com/"
BUG_REPORT_URL="https://bugs.launchpad.net/ubuntu/"
UBUNTU_CODENAME=noble
LOGO=ubuntu-logo
`

func (m *Machine) osRelease() string {
	if m.cfg.Shape.OSRelease != "" {
		return m.cfg.Shape.OSRelease
	}
	return ubuntu
}

// file is a file to write, with the mode it is to have.
type file struct {
	path string
	mode os.FileMode
	text string
}

// hidden are the directories of the machine's /etc that a host has too, with other things in them.
func hidden() []string {
	return []string{"ssh", "ssh/sshd_config.d", "systemd/system", "profile.d", "sudoers.d", "cron.d"}
}

// absent is what a fresh host does not have in /etc, though the machine may: other clusters'
// configuration, and settings of the machine's people.
func absent() []string {
	return []string{
		"k0s", "kubernetes", "cni", "containerd", "docker", "init.d", "passwd-", "group-", "shadow-", "gshadow-",
		"wgetrc", "curlrc", "gitconfig", "npmrc", "pip.conf", "rancher",
	}
}

// absentPrograms is what a fresh host does not have in /usr/bin and /usr/sbin.
func absentPrograms() []string {
	return []string{"k0s", "kubectl", "kubelet", "kubeadm", "etcd", "etcdctl", "containerd", "docker", "crictl"}
}

func (m *Machine) makeEtc() error {
	etc := filepath.Join(m.disk, partEtc)
	for _, d := range hidden() {
		path := filepath.Join(etc, d)
		if err := makeDir(path, 0o755); err != nil {
			return err
		}
		if err := opaque(path); err != nil {
			return err
		}
	}
	for _, name := range absent() {
		if err := whiteout(filepath.Join(etc, name)); err != nil {
			return err
		}
	}
	passwd, group, err := accounts()
	if err != nil {
		return err
	}
	name := m.cfg.Shape.Hostname
	if name == "" {
		name = m.cfg.Name
	}
	files := []file{
		{"hostname", 0o644, name + "\n"},
		{"hosts", 0o644, m.cfg.Hosts},
		{"machine-id", 0o444, m.machineID + "\n"},
		{"os-release", 0o644, m.osRelease()},
		{"resolv.conf", 0o644, "# A sandbox has no name server; /etc/hosts names its hosts.\n"},
		{"passwd", 0o644, passwd},
		{"group", 0o644, group},
		{"shadow", 0o640, shadowFor(passwd)},
		{"gshadow", 0o640, ""},
		{"profile", 0o644, "PATH=" + Path + "\nexport PATH\n"},
		{"bash.bashrc", 0o644, ""},
		{"environment", 0o644, "PATH=\"" + Path + "\"\n"},
		{"motd", 0o644, ""},
		{"issue", 0o644, ""},
		{"fstab", 0o644, ""},
		{"ssh/sshd_config", 0o644, sshdConfig()},
	}
	if hasSudo() {
		files = append(files, file{"sudoers.d/admin", 0o440, "admin ALL=(ALL) NOPASSWD:ALL\n"})
	}
	for name, key := range m.cfg.HostKeys {
		files = append(files, file{"ssh/" + name, 0o600, string(key)})
	}
	for _, f := range files {
		path := filepath.Join(etc, f.path)
		if err := os.WriteFile(path, []byte(f.text), f.mode); err != nil {
			return err
		}
		if err := os.Chmod(path, f.mode); err != nil {
			return err
		}
	}
	return nil
}

// accounts are the machine's system users and groups, without its people, and admin.
func accounts() (passwd, group string, err error) {
	passwd, err = systemLines("/etc/passwd", 2)
	if err != nil {
		return "", "", err
	}
	group, err = systemLines("/etc/group", 2)
	if err != nil {
		return "", "", err
	}
	shell := loginShell()
	passwd = "root:x:0:0:root:/root:" + shell + "\n" + passwd
	group = "root:x:0:\n" + group
	if !strings.Contains(passwd, "\nsshd:") {
		passwd += "sshd:x:74:65534::/run/sshd:/usr/sbin/nologin\n"
	}
	passwd += fmt.Sprintf("admin:x:%d:%d:operator:/home/admin:%s\n", adminID, adminID, shell)
	group += fmt.Sprintf("admin:x:%d:\n", adminID)
	return passwd, group, nil
}

// systemLines gives the lines of an account file whose number says that no person is behind it.
// Root's own line is left out.
func systemLines(name string, column int) (string, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		f := strings.Split(s.Text(), ":")
		if len(f) <= column {
			continue
		}
		id, err := strconv.Atoi(f[column])
		if err != nil || id == 0 || id >= 1000 && id < 65534 || f[0] == "admin" {
			continue
		}
		fmt.Fprintln(&out, s.Text())
	}
	return out.String(), nil
}

// shadowFor gives every account a password that nothing matches. Not the "!" of a locked account:
// without PAM, sshd lets nobody in there.
func shadowFor(passwd string) string {
	var out strings.Builder
	for line := range strings.Lines(passwd) {
		name, _, _ := strings.Cut(line, ":")
		fmt.Fprintf(&out, "%s:*:19000:0:99999:7:::\n", name)
	}
	return out.String()
}

// memInfo is the text of /proc/meminfo of a machine with that much memory, most of it free.
func memInfo(size int64) string {
	if size == 0 {
		size = defaultRAM
	}
	kb := size >> 10
	return fmt.Sprintf(`MemTotal:       %8d kB
MemFree:        %8d kB
MemAvailable:   %8d kB
Buffers:        %8d kB
Cached:         %8d kB
SwapCached:            0 kB
SwapTotal:             0 kB
SwapFree:              0 kB
HugePages_Total:       0
HugePages_Free:        0
Hugepagesize:       2048 kB
`, kb, kb*8/10, kb*9/10, kb/100, kb/10)
}
