package sandboxtest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/examples/sandbox/sandboxtest"
)

func TestWhatAHostPassesFor(t *testing.T) {
	c := sandboxtest.New(t, sandboxtest.Config{Spare: 2, HostsOnly: true, Shapes: map[string]sandboxtest.Shape{
		"h2": {OSRelease: "ID=rhel\nVERSION_ID=\"9.6\"\n", MemoryBytes: 3 << 30, DataBytes: 1 << 30, TmpNoExec: true, Hostname: "Node-2.example.com"},
	}})
	h1, h2 := c.Host("h1"), c.Host("h2")
	for _, want := range []struct {
		host   *sandboxtest.Host
		script string
		out    string
	}{
		{h1, "hostname", "h1"},
		{h1, ". /etc/os-release; echo $ID $VERSION_ID", "ubuntu 24.04"},
		{h1, "stat -f -c %T /sys/fs/cgroup", "cgroup2fs"},
		{h1, "for c in cpu cpuset memory pids; do grep -qw $c /sys/fs/cgroup/cgroup.controllers || echo no $c; done", ""},
		{h1, "awk '/MemTotal/{print $2}' /proc/meminfo", "16777216"},
		{h1, "df -Pk /var/lib | awk 'NR==2{print ($4 >= 33554432)}'", "1"},
		{h1, "cat /proc/1/comm; test -d /run/systemd/system && echo systemd", "systemd\nsystemd"},
		{h1, "ls -A /home/admin /root /tmp /var/lib /usr/local/bin | grep -v ^/ | sort -u | xargs", ".ssh"},
		{h1, "env | sort | cut -d= -f1 | xargs", "HOME LANG LOGNAME PATH PWD SHELL USER"},
		{h1, "ls /sys/class/net | xargs", "eth0 lo"},
		{h1, "echo x 2>/dev/null >/proc/sys/kernel/panic || echo refused", "refused"},
		{h1, "date -s 2001-01-01 >/dev/null 2>&1 || echo refused", "refused"},
		{h1, "mkdir /sys/fs/cgroup/x 2>/dev/null || echo refused", "refused"},
		{h1, "sudo -u admin true 2>/dev/null; su admin -c 'id -un'", "admin"},
		{h2, "hostname", "Node-2.example.com"},
		{h2, ". /etc/os-release; echo $ID $VERSION_ID", "rhel 9.6"},
		{h2, "awk '/MemTotal/{print $2}' /proc/meminfo", "3145728"},
		{h2, "df -Pk /var/lib | awk 'NR==2{print $2}'", "1048576"},
		{h2, "printf '#!/bin/sh\\n' >/tmp/x; chmod 755 /tmp/x; /tmp/x 2>/dev/null || echo refused", "refused"},
	} {
		if got := want.host.Sh(want.script); got != want.out {
			t.Errorf("%s: %s: %q, want %q", want.host.Name(), want.script, got, want.out)
		}
	}
	ids := map[string]bool{}
	for _, name := range c.Hosts() {
		ids[c.Host(name).Exec("cat", "/etc/machine-id")] = true
	}
	if len(ids) != len(c.Hosts()) {
		t.Errorf("%d hosts share machine-ids: %v", len(c.Hosts()), ids)
	}
}

const unit = `[Unit]
Description=a test
[Service]
ExecStart=/bin/sh -c "echo \"as $${HOME:-nobody}, $GREETING\"; exec sleep 1000"
EnvironmentFile=-/etc/greeting
Restart=always
RestartSec=1
KillMode=process
[Install]
WantedBy=multi-user.target
`

func TestServicesAndReboot(t *testing.T) {
	c := sandboxtest.New(t, sandboxtest.Config{Spare: 1, HostsOnly: true})
	h := c.Host("h1")
	h.WriteFile("/etc/systemd/system/x.service", []byte(unit), 0o644)
	h.WriteFile("/etc/greeting", []byte("GREETING='good day'\n"), 0o644)
	h.WriteFile("/run/gone", nil, 0o644)
	h.WriteFile("/var/lib/kept", nil, 0o644)
	state := func() string { out, _ := h.Run("systemctl", "is-active", "x"); return out } // its status says the same
	if got := state(); got != "inactive" {
		t.Errorf("before: %s", got)
	}
	h.Sh("systemctl daemon-reload && systemctl enable --now x")
	if got := state(); got != "active" {
		t.Errorf("after start: %s", got)
	}
	sandboxtest.Eventually(t, 5*time.Second, "the service's output is in its log", func() bool {
		return strings.Contains(h.Exec("journalctl", "-u", "x"), "as nobody, good day")
	})
	boot := h.Exec("cat", "/proc/sys/kernel/random/boot_id")

	h.Reboot()
	if got := state(); got != "active" {
		t.Errorf("an enabled service after a reboot: %s", got)
	}
	if got := h.Sh("ls /run/gone /var/lib/kept 2>/dev/null; true"); got != "/var/lib/kept" {
		t.Errorf("after a reboot there is %q", got)
	}
	if again := h.Exec("cat", "/proc/sys/kernel/random/boot_id"); again == boot {
		t.Error("the boot id is that of before the reboot")
	}

	pid := h.Exec("systemctl", "show", "-p", "MainPID", "--value", "x")
	h.Exec("kill", "-9", pid)
	sandboxtest.Eventually(t, 5*time.Second, "a service that died is waiting to be started again", func() bool {
		return h.Exec("systemctl", "show", "x", "-p", "SubState", "--value") == "auto-restart"
	})
	sandboxtest.Eventually(t, 10*time.Second, "it runs again", func() bool { return state() == "active" })
	if got := h.Exec("systemctl", "show", "x", "--property=NRestarts"); got != "NRestarts=1" {
		t.Errorf("after one restart: %s", got)
	}

	h.Kill()
	if _, err := h.Run("true"); err == nil {
		t.Error("a host that was killed runs a command")
	}
	h.Start()
	if got := state(); got != "active" {
		t.Errorf("an enabled service after a power cut: %s", got)
	}
	h.Sh("systemctl disable --now x")
	h.Reboot()
	if got := state(); got != "inactive" {
		t.Errorf("a disabled service after a reboot: %s", got)
	}
}

func TestRebootFromWithin(t *testing.T) {
	c := sandboxtest.New(t, sandboxtest.Config{Spare: 1, HostsOnly: true})
	h := c.Host("h1")
	boot := h.Exec("cat", "/proc/sys/kernel/random/boot_id")
	_, _ = h.Run("reboot") // its caller goes down with the host
	sandboxtest.Eventually(t, 20*time.Second, "the host is back", func() bool {
		again, err := h.Run("cat", "/proc/sys/kernel/random/boot_id")
		return err == nil && again != boot
	})
}

func TestLayers(t *testing.T) {
	c := sandboxtest.New(t, sandboxtest.Config{Spare: 1, HostsOnly: true})
	h := c.Host("h1")
	h.WriteFile("/etc/a", []byte("1"), 0o644)
	h.WriteFile("/var/lib/b", []byte("1"), 0o644)
	before := h.Snapshot()

	// Looking is no change.
	client := dial(t, c, "root", h.Address())
	output(t, client, "ls -laR /etc /var /root; cat /etc/passwd; systemctl list-units; systemctl show ssh")
	if changes := sandboxtest.Diff(before, h.Snapshot()); len(changes) > 0 {
		t.Errorf("a host that was looked at has changed: %v", changes)
	}

	h.Sh(`echo 2 >/etc/a; rm /var/lib/b; touch /usr/local/bin/c; chmod 600 /etc/hosts; mkdir /run/d; ln -s x /root/e; touch /tmp/f; rm /etc/services`)
	got := map[string]string{}
	for _, ch := range sandboxtest.Diff(before, h.Snapshot()) {
		got[ch.Path] = ch.What
	}
	for path, what := range map[string]string{
		"/etc/a": "content", "/var/lib/b": "removed", "/usr/local/bin/c": "added", "/etc/hosts": "mode",
		"/run/d": "added", "/root/e": "added", "/tmp/f": "added", "/etc/services": "added", // a whiteout
		"/root": "time",
	} {
		if got[path] != what {
			t.Errorf("%s: %q, want %q", path, got[path], what)
		}
	}
}

func TestCutAndHeal(t *testing.T) {
	c := sandboxtest.New(t, sandboxtest.Config{Spare: 2, HostsOnly: true})
	h1 := c.Host("h1")
	ping := func() error { return reaches(h1, "10.99.0.22:22") }
	if err := ping(); err != nil {
		t.Fatal(err)
	}
	c.Host("h2").Cut()
	if err := ping(); err == nil {
		t.Error("a host that is cut off answers")
	}
	c.Host("h2").Heal()
	sandboxtest.Eventually(t, 10*time.Second, "a host that was mended answers", func() bool { return ping() == nil })
}
