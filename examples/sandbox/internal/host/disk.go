package host

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	diskSize    = "64g"
	defaultData = 64 << 30
	defaultRAM  = 16 << 30
)

// makeDisk mounts the host's file systems and fills them with what a fresh install has.
func (m *Machine) makeDisk() error {
	if err := os.Mkdir(m.disk, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", m.disk, "tmpfs", 0, "mode=0755,size="+diskSize); err != nil {
		return fmt.Errorf("tmpfs on %s: %w", m.disk, err)
	}
	for _, part := range []string{partRoot, partEtc, partUsr, partEtc + ".work", partUsr + ".work"} {
		if err := os.Mkdir(filepath.Join(m.disk, part), 0o755); err != nil {
			return err
		}
	}
	if err := makeDir(filepath.Join(m.disk, partCommands), 0o1733); err != nil {
		return err
	}
	if err := m.makeRoot(); err != nil {
		return err
	}
	if err := m.makeUsr(); err != nil {
		return err
	}
	return m.makeEtc()
}

// dir is a directory to make, with the mode it is to have whatever the umask.
type dir struct {
	path string
	mode uint32
}

func makeDirs(root string, dirs []dir) error {
	for _, d := range dirs {
		if err := makeDir(filepath.Join(root, d.path), d.mode); err != nil {
			return err
		}
	}
	return nil
}

func makeDir(path string, mode uint32) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	return unix.Chmod(path, mode)
}

func (m *Machine) makeRoot() error {
	root := filepath.Join(m.disk, partRoot)
	err := makeDirs(root, []dir{
		{"proc", 0o555}, {"sys", 0o555}, {"dev", 0o755}, {"run", 0o755}, {"tmp", 0o1777},
		{"etc", 0o755}, {"usr", 0o755}, {"root", 0o700}, {"home", 0o755}, {"mnt", 0o755}, {"media", 0o755},
		{"opt", 0o755}, {"srv", 0o755}, {"boot", 0o755}, {"var/lib", 0o755}, {"var/log", 0o755},
		{"var/cache", 0o755}, {"var/tmp", 0o1777}, {"var/spool", 0o755}, {"var/mail", 0o2775},
	})
	if err != nil {
		return err
	}
	size := m.cfg.Shape.DataBytes
	if size == 0 {
		size = defaultData
	}
	if err := unix.Mount("tmpfs", filepath.Join(root, "var/lib"), "tmpfs", 0, fmt.Sprintf("mode=0755,size=%d", size)); err != nil {
		return fmt.Errorf("tmpfs on /var/lib: %w", err)
	}
	links := map[string]string{"var/run": "/run", "var/lock": "/run/lock"}
	for _, name := range topLinks() {
		st, err := os.Lstat("/" + name)
		switch {
		case err != nil:
		case st.IsDir():
			if err := makeDir(filepath.Join(root, name), 0o755); err != nil {
				return err
			}
		default:
			if links[name], err = os.Readlink("/" + name); err != nil {
				return err
			}
		}
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			return err
		}
	}
	return m.makeHomes(root)
}

// makeHomes lets the operator in: as root, and as admin, who has sudo where the machine has it.
func (m *Machine) makeHomes(root string) error {
	for _, h := range []struct {
		home string
		id   int
	}{{"root", 0}, {"home/admin", adminID}} {
		ssh := filepath.Join(root, h.home, ".ssh")
		if err := makeDir(ssh, 0o700); err != nil {
			return err
		}
		keys := filepath.Join(ssh, "authorized_keys")
		if err := os.WriteFile(keys, []byte(m.cfg.Login), 0o600); err != nil {
			return err
		}
		for _, p := range []string{filepath.Join(root, h.home), ssh, keys} {
			if err := os.Chown(p, h.id, h.id); err != nil {
				return err
			}
		}
	}
	return unix.Chmod(filepath.Join(root, "home/admin"), 0o750)
}

// makeUsr hides the machine's /usr/local, and puts the sandbox's programs where the host looks for
// its init system.
func (m *Machine) makeUsr() error {
	usr := filepath.Join(m.disk, partUsr)
	err := makeDirs(usr, []dir{
		{"local", 0o755}, {"local/bin", 0o755}, {"local/sbin", 0o755}, {"local/lib", 0o755},
		{"local/share", 0o755}, {"lib", 0o755}, {"lib/mkesdk-sandbox", 0o755}, {"bin", 0o755}, {"sbin", 0o755},
	})
	if err != nil {
		return err
	}
	if err := opaque(filepath.Join(usr, "local")); err != nil {
		return err
	}
	for _, name := range absentPrograms() {
		for _, dir := range []string{"bin", "sbin"} {
			if err := whiteout(filepath.Join(usr, dir, name)); err != nil {
				return err
			}
		}
	}
	for name := range m.cfg.Programs {
		// A file to bind the program over.
		if err := os.WriteFile(filepath.Join(usr, "lib/mkesdk-sandbox", name), nil, 0o755); err != nil {
			return err
		}
	}
	self := filepath.Join(ProgramDir, Program)
	for _, name := range []string{"bin/systemctl", "bin/journalctl", "sbin/reboot", "sbin/poweroff", "sbin/halt"} {
		if err := os.Symlink(self, filepath.Join(usr, name)); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(usr, "lib/os-release"), []byte(m.osRelease()), 0o644)
}

// opaque makes an upper directory hide the machine's of that name instead of adding to it.
func opaque(path string) error {
	if err := unix.Setxattr(path, "trusted.overlay.opaque", []byte("y"), 0); err != nil {
		return fmt.Errorf("hide the machine's %s: %w", filepath.Base(path), err)
	}
	return nil
}

// whiteout makes an upper layer hide what the machine has under that name: a character device 0/0
// is how an overlay says "not here".
func whiteout(path string) error {
	if err := unix.Mknod(path, unix.S_IFCHR, 0); err != nil {
		return fmt.Errorf("hide the machine's %s: %w", filepath.Base(path), err)
	}
	return nil
}

// Install copies a program of the machine's to a path below /usr of the host, as root's 0755.
func (m *Machine) Install(source, target string) error {
	rel, err := filepath.Rel("/usr", target)
	if err != nil || !filepath.IsLocal(rel) {
		return fmt.Errorf("host %s: install to %s: want a path below /usr", m.cfg.Name, target)
	}
	in, err := os.Open(source)
	if err != nil {
		return fmt.Errorf("host %s: install: %w", m.cfg.Name, err)
	}
	defer in.Close()
	out, err := os.OpenFile(filepath.Join(m.disk, partUsr, rel), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return fmt.Errorf("host %s: install: %w", m.cfg.Name, err)
	}
	_, err = io.Copy(out, in)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("host %s: install %s: %w", m.cfg.Name, target, err)
	}
	return nil
}

// ReadFile reads a file of the host's disk; errors.Is(err, fs.ErrNotExist) where there is none.
// Links are not followed out of the disk.
func (m *Machine) ReadFile(name string) ([]byte, error) {
	dir, rel := partRoot, strings.TrimPrefix(name, "/")
	for _, part := range []string{partEtc, partUsr} {
		if after, ok := strings.CutPrefix(rel, part+"/"); ok {
			dir, rel = part, after
		}
	}
	root, err := os.OpenRoot(filepath.Join(m.disk, dir))
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", m.cfg.Name, err)
	}
	defer root.Close()
	data, err := root.ReadFile(rel)
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", m.cfg.Name, err)
	}
	return data, nil
}

// SSHDPath is the machine's OpenSSH server, empty where there is none.
func SSHDPath() string {
	for _, p := range []string{"/usr/sbin/sshd", "/usr/bin/sshd"} {
		if st, err := os.Stat(p); err == nil && st.Mode()&0o111 != 0 {
			return p
		}
	}
	return ""
}

func sftpServer() string {
	for _, p := range []string{"/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server"} {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	return ""
}

func hasSudo() bool {
	_, err := exec.LookPath("sudo")
	return err == nil
}
