package hoststest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mkesdk/mkesdk/hosts/hoststest"
)

// write makes a file and the directories above it.
func write(t *testing.T, name, content string, mode os.FileMode) {
	t.Helper()
	if strings.HasSuffix(name, "/") {
		if err := os.MkdirAll(name, 0o755); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

// install makes of m a file system below root, and programs in bin that answer as
// those of m would.
func install(t *testing.T, m hoststest.Machine, root, bin string) {
	t.Helper()
	file := func(name, content string) { write(t, root+name, content, 0o644) }
	program := func(name, script string) { write(t, bin+"/"+name, "#!/bin/sh\n"+script+"\n", 0o755) }
	for _, dir := range []string{"/var/lib/", "/tmp/", "/run/", "/etc/"} {
		file(dir, "")
	}
	for name, content := range m.Files {
		file(name, content)
	}
	for _, k0s := range []string{"/usr/local/bin/k0s", "/opt/k0s"} {
		if _, ok := m.Files[k0s]; ok {
			write(t, root+k0s, k0sScript(m), 0o755)
			if err := os.Chmod(root+k0s, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, content := range map[string]string{
		"/proc/sys/kernel/hostname":               m.Hostname,
		"/proc/sys/kernel/random/boot_id":         m.BootID,
		"/etc/machine-id":                         m.MachineID,
		"/proc/1/comm":                            m.Init,
		"/proc/sys/fs/inotify/max_user_instances": fmt.Sprint(m.InotifyInstances),
		"/proc/sys/fs/inotify/max_user_watches":   fmt.Sprint(m.InotifyWatches),
		"/proc/meminfo":                           fmt.Sprintf("MemTotal:       %d kB\nMemFree: 5 kB\nSwapTotal:      %d kB\nHugePages_Total: 0\n", m.MemoryKB, m.SwapKB),
		"/proc/self/cgroup":                       "0::/inner/deep\n",
		"/sys/module/apparmor/parameters/enabled": map[bool]string{true: "Y", false: "N"}[m.AppArmor],
		"/etc/selinux/config":                     "# SELINUXTYPE= is a comment\nSELINUX=enforcing\nSELINUXTYPE=" + m.SELinuxPolicy,
	} {
		file(name, content+"\n")
	}
	switch m.Init {
	case "systemd":
		file("/run/systemd/system/", "")
	case "openrc":
		file("/run/openrc/", "")
	}
	if m.Cgroup == "v2" {
		file("/sys/fs/cgroup/cgroup.controllers", m.Controllers+"\n")
	}
	for name, content := range map[string]string{"memory.max": m.MemoryMax, "cpu.max": m.CPUMax} {
		if content != "" {
			file("/sys/fs/cgroup/inner/"+name, content+"\n")
		}
	}
	if mode, ok := map[string]string{"permissive": "0", "enforcing": "1"}[m.SELinux]; ok {
		file("/sys/fs/selinux/enforce", mode)
	}
	mountinfo := "22 1 0:1 / / rw - ext4 /dev/vda rw\n"
	for i, mount := range m.Mounts {
		mountinfo += fmt.Sprintf("%d 22 0:%d / %s rw,relatime shared:1 - tmpfs tmpfs rw\n", 30+i, i, strings.ReplaceAll(mount, " ", `\040`))
	}
	file("/proc/self/mountinfo", mountinfo)
	header := "  sl  local_address rem_address   st tx_queue rx_queue\n"
	tcp, tcp6 := m.Sockets()
	for name, sockets := range map[string][]string{"tcp": tcp, "tcp6": tcp6} {
		text := header + "   0: 0100007F:9999 0100007F:1234 01 0:0 0:0\n" // a connection, not a listener
		for _, s := range sockets {
			text += "   1: " + s + " 00000000:0000 0A 0:0 0:0\n"
		}
		file("/proc/net/"+name, text)
	}

	program("id", "echo 0")
	program("date", "echo 1796071705.000000001")
	program("nproc", fmt.Sprint("echo ", m.CPUs))
	program("uname", `case $1 in -m) echo "`+m.Machine+`" ;; -r) echo "`+m.Kernel+`" ;; *) exit 1 ;; esac`)
	program("ip", `case "$*" in
"-o addr show") printf '%s' '`+m.IPAddr()+`' ;;
"-o route show default") printf '%s' '`+m.IPRoute()+`' ;;
"-o -6 route show default") ;;
*) exit 1 ;;
esac`)
	types := map[string][2]string{"v2": {"63677270"}, "v1": {"1021994"}, "hybrid": {"1021994", "63677270"}}[m.Cgroup]
	program("stat", `case "$4" in
*/sys/fs/cgroup) echo "`+types[0]+`" ;;
*/sys/fs/cgroup/unified) echo "`+types[1]+`" ;;
*) echo `+fmt.Sprint(m.Disk.FreeBytes/4096, 4096, m.Disk.Inodes, m.Disk.FreeInodes)+" "+m.Disk.Type+` ;;
esac`)
	program("systemctl", `[ "$1 $2" = "show --property=Id,LoadState,ActiveState,SubState" ] || exit 1
printf '%s' '`+m.SystemctlShow("k0scontroller.service", "k0sworker.service", "firewalld.service", "nm-cloud-setup.service", "nm-cloud-setup.timer")+`'`)
	rc := "case $1 in\n"
	for name, status := range m.Services {
		if !strings.Contains(name, ".") {
			rc += name + ") exit " + status + " ;;\n"
		}
	}
	program("rc-service", rc+"*) exit 1 ;;\nesac")
	if m.AppArmorParser {
		program("apparmor_parser", "exit 1")
	}
}

// k0sScript is a k0s that answers what m says, and holds secrets in its status as
// the real one does.
func k0sScript(m hoststest.Machine) string {
	if m.K0sVersion == "" {
		return "#!/bin/sh\necho broken >&2\nexit 2\n"
	}
	status := "echo 'Error: status: no socket' >&2; exit 1"
	if m.StatusRole != "" {
		status = "cat <<'EOF'\n" + `{
  "Version": "` + m.K0sVersion + `",
  "Pid": 214,
  "Role": "` + m.StatusRole + `",
  "Args": [
    "/usr/local/bin/k0s",
    "worker"
  ],
  "ClusterConfig": {
    "spec": {
      "storage": {
        "kine": {
          "dataSource": "mysql://root:` + secret + `@db"
        }
      }
    }
  },
  "K0sVars": {
    "Role": "no"
  }
}` + "\nEOF"
	}
	return "#!/bin/sh\ncase $1 in\nversion) echo " + m.K0sVersion + " ;;\nstatus)\n" + status + "\n;;\n*) exit 1 ;;\nesac\n"
}
