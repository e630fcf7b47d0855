package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Parts of a host's disk, as directories of the file system that is mounted for it.
const (
	partRoot     = "root"     // /, but for the parts below
	partEtc      = "etc"      // what /etc has over the machine's
	partUsr      = "usr"      // what /usr has over the machine's
	partCommands = "commands" // the command log; /run/sandbox/commands on the host
)

// enterRoot makes the disk the root of this process's mount namespace, and mounts what a running
// machine has besides its disk.
func enterRoot(msg bootMessage) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	root := filepath.Join(msg.Disk, partRoot)
	if err := unix.Mount(root, root, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind %s: %w", root, err)
	}
	steps := []func() error{
		func() error { return overlay(msg.Disk, partEtc, root) },
		func() error { return overlay(msg.Disk, partUsr, root) },
		func() error { return bindMachine(root) },
		func() error { return bindPrograms(root, msg.Programs) },
		func() error { return mountRun(root, msg) },
		func() error { return mountTmp(root, msg.Shape.TmpNoExec) },
		func() error { return makeDev(root) },
		func() error { return mountProc(root, msg.Shape) },
		func() error { return mountSys(root) },
		func() error { return pivot(root) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func overlay(disk, part, root string) error {
	target := filepath.Join(root, part)
	opts := fmt.Sprintf("lowerdir=/%s,upperdir=%s,workdir=%s", part, filepath.Join(disk, part), filepath.Join(disk, part+".work"))
	if err := unix.Mount("overlay", target, "overlay", 0, opts); err != nil {
		return fmt.Errorf("overlay of /%s (a kernel with overlayfs and a root user are needed): %w", part, err)
	}
	return nil
}

// topLinks are the directories beside /usr that hold programs. Where /usr is merged they are
// links into it.
func topLinks() []string { return []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} }

func bindMachine(root string) error {
	for _, name := range topLinks() {
		st, err := os.Lstat("/" + name)
		if err != nil || !st.IsDir() {
			continue // a link was made with the disk
		}
		if err := bindReadOnly("/"+name, filepath.Join(root, name)); err != nil {
			return err
		}
	}
	return nil
}

func bindPrograms(root string, programs map[string]string) error {
	for name, path := range programs {
		if err := bindReadOnly(path, filepath.Join(root, ProgramDir, name)); err != nil {
			return err
		}
	}
	return nil
}

// bindReadOnly binds source over target, which exists, so that it cannot be written there.
func bindReadOnly(source, target string) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s: %w", source, err)
	}
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("bind %s read-only: %w", source, err)
	}
	return nil
}

func tmpfs(target, opts string, flags uintptr) error {
	if err := unix.Mount("tmpfs", target, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|flags, opts); err != nil {
		return fmt.Errorf("tmpfs on %s: %w", target, err)
	}
	return nil
}

func mountRun(root string, msg bootMessage) error {
	run := filepath.Join(root, "run")
	if err := tmpfs(run, "mode=0755,size=4g", 0); err != nil {
		return err
	}
	// systemd/system is what is looked for to find that systemd runs.
	for _, dir := range []string{"systemd/system", "sshd", "lock", "user", "sandbox/commands"} {
		if err := os.MkdirAll(filepath.Join(run, dir), 0o755); err != nil {
			return err
		}
	}
	log := filepath.Join(run, "sandbox/commands")
	if err := unix.Mount(filepath.Join(msg.Disk, partCommands), log, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind the command log: %w", err)
	}
	return nil
}

func mountTmp(root string, noExec bool) error {
	var flags uintptr
	if noExec {
		flags = unix.MS_NOEXEC
	}
	return tmpfs(filepath.Join(root, "tmp"), "mode=1777,size=16g", flags)
}

func pivot(root string) error {
	if err := unix.Chdir(root); err != nil {
		return fmt.Errorf("enter the root: %w", err)
	}
	// The old root is stacked on the new one and taken away from there: no directory for it is
	// needed, and nothing of the machine stays in sight.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("take the machine's root away: %w", err)
	}
	return unix.Chdir("/")
}

// mountSys shows the host's own network devices and a cgroup v2 tree with the controllers that
// k0s asks for. The kernel may have them on v1, so the list of them is a file put over its own;
// nothing in the tree can be written, since what is made there would outlive the sandbox.
func mountSys(root string) error {
	sys := filepath.Join(root, "sys")
	if err := unix.Mount("sysfs", sys, "sysfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("sysfs: %w", err)
	}
	cg := filepath.Join(sys, "fs/cgroup")
	if err := unix.Mount("cgroup2", cg, "cgroup2", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("cgroup v2: %w", err)
	}
	return shadow(root, filepath.Join(cg, "cgroup.controllers"), "cpuset cpu io memory hugetlb pids rdma misc\n")
}

// shadow puts a file with that text over target, which exists.
func shadow(root, target, text string) error {
	dir := filepath.Join(root, "run/sandbox/shadow")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	rel, err := filepath.Rel(root, target)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, strings.ReplaceAll(rel, "/", "-"))
	if err := os.WriteFile(file, []byte(text), 0o444); err != nil {
		return err
	}
	return bindReadOnly(file, target)
}

// mountProc shows the host's own processes. Of the kernel's settings only those of the network
// are the host's; the others cannot be written.
func mountProc(root string, shape Shape) error {
	proc := filepath.Join(root, "proc")
	if err := unix.Mount("proc", proc, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("proc: %w", err)
	}
	settings := filepath.Join(proc, "sys")
	if err := bindReadOnly(settings, settings); err != nil {
		return err
	}
	network := filepath.Join(settings, "net")
	if err := unix.Mount(network, network, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s: %w", network, err)
	}
	if err := unix.Mount("", network, "", unix.MS_BIND|unix.MS_REMOUNT, ""); err != nil {
		return fmt.Errorf("bind %s writable: %w", network, err)
	}
	trigger := filepath.Join(proc, "sysrq-trigger")
	if err := bindReadOnly(trigger, trigger); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	id, err := newUUID()
	if err != nil {
		return err
	}
	if err := shadow(root, filepath.Join(settings, "kernel/random/boot_id"), id+"\n"); err != nil {
		return err
	}
	return shadow(root, filepath.Join(proc, "meminfo"), memInfo(shape.MemoryBytes))
}

func newUUID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/uuid")
	if err != nil {
		return "", fmt.Errorf("boot id: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}
