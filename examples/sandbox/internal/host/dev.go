package host

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

type node struct {
	name         string
	mode         uint32
	major, minor uint32
}

// devNodes are the devices a host has; none of them is the machine's hardware.
func devNodes() []node {
	return []node{
		{"null", 0o666, 1, 3}, {"zero", 0o666, 1, 5}, {"full", 0o666, 1, 7},
		{"random", 0o666, 1, 8}, {"urandom", 0o666, 1, 9}, {"tty", 0o666, 5, 0},
	}
}

func makeDev(root string) error {
	dev := filepath.Join(root, "dev")
	if err := unix.Mount("tmpfs", dev, "tmpfs", unix.MS_NOSUID|unix.MS_STRICTATIME, "mode=0755,size=64k"); err != nil {
		return fmt.Errorf("tmpfs on %s: %w", dev, err)
	}
	for _, n := range devNodes() {
		path := filepath.Join(dev, n.name)
		if err := unix.Mknod(path, unix.S_IFCHR|n.mode, int(unix.Mkdev(n.major, n.minor))); err != nil {
			return fmt.Errorf("device %s: %w", n.name, err)
		}
		if err := os.Chmod(path, os.FileMode(n.mode)); err != nil { // past the umask
			return err
		}
	}
	links := map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1",
		"stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx",
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(dev, name)); err != nil {
			return err
		}
	}
	for _, dir := range []string{"pts", "shm"} {
		if err := os.Mkdir(filepath.Join(dev, dir), 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("devpts", filepath.Join(dev, "pts"), "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620,gid=5"); err != nil {
		return fmt.Errorf("devpts: %w", err)
	}
	return tmpfs(filepath.Join(dev, "shm"), "mode=1777,size=64m", 0)
}
