package host

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Entry is one file of a host's writable layers.
type Entry struct {
	Mode    fs.FileMode
	UID     uint32
	GID     uint32
	Size    int64  // of a regular file
	Hash    string // SHA-256 of a regular file's content, in hex
	Target  string // of a link
	ModTime time.Time
}

// Snapshot is everything that a host can write, by path on the host.
type Snapshot map[string]Entry

// Unwatched are the paths that a host's own init, SSH server and sudo write, in the patterns of
// path.Match; what lies below one is left out as well. Everything else that changes on a host,
// somebody changed.
func Unwatched() []string {
	return []string{
		"/run/systemd", "/run/sandbox", "/run/sshd", "/run/sshd.pid", "/run/utmp", "/run/sudo",
		"/var/lib/sudo", "/var/log/*.log",
	}
}

func unwatched(p string) bool {
	for _, pattern := range Unwatched() {
		if ok, _ := path.Match(pattern, p); ok { // the patterns are well formed
			return true
		}
	}
	return false
}

// Snapshot reads every writable layer of the host, which must be up for /run and /tmp to be among
// them. A file that goes while it is read is left out.
func (m *Machine) Snapshot() (Snapshot, error) {
	layers := []struct{ dir, at string }{
		{filepath.Join(m.disk, partRoot), "/"},
		{filepath.Join(m.disk, partEtc), "/etc"},
		{filepath.Join(m.disk, partUsr), "/usr"},
	}
	if root, err := m.root(); err == nil {
		for _, at := range []string{"/run", "/tmp", "/dev/shm"} {
			layers = append(layers, struct{ dir, at string }{filepath.Join(root, at), at})
		}
	}
	out := Snapshot{}
	for _, l := range layers {
		if err := out.add(l.dir, l.at); err != nil {
			return nil, fmt.Errorf("host %s: layer %s: %w", m.cfg.Name, l.at, err)
		}
	}
	return out, nil
}

func (s Snapshot) add(dir, at string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		p := path.Join(at, rel)
		if unwatched(p) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		e, err := entry(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		s[p] = e
		return nil
	})
}

func entry(name string) (Entry, error) {
	st, err := os.Lstat(name)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Mode: st.Mode(), ModTime: st.ModTime()}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		e.UID, e.GID = sys.Uid, sys.Gid
	}
	switch {
	case st.Mode().IsRegular():
		e.Size = st.Size()
		e.Hash, err = hashFile(name)
	case st.Mode()&fs.ModeSymlink != 0:
		e.Target, err = os.Readlink(name)
	}
	return e, err
}

func hashFile(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Change is a path that is not what it was.
type Change struct {
	Path string
	What string // "added", "removed", or what of it changed: "content", "mode, owner", "time"
}

func (c Change) String() string { return c.Path + ": " + c.What }

// Diff lists what changed from before to after, by path. Rewriting a file with the content it had
// is a change of its time.
func Diff(before, after Snapshot) []Change {
	var out []Change
	for p, b := range before {
		a, ok := after[p]
		if !ok {
			out = append(out, Change{p, "removed"})
		} else if what := changed(b, a); what != "" {
			out = append(out, Change{p, what})
		}
	}
	for p := range after {
		if _, ok := before[p]; !ok {
			out = append(out, Change{p, "added"})
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return out
}

func changed(b, a Entry) string {
	var what []string
	if b.Mode != a.Mode {
		what = append(what, "mode")
	}
	if b.UID != a.UID || b.GID != a.GID {
		what = append(what, "owner")
	}
	if b.Hash != a.Hash || b.Target != a.Target || b.Size != a.Size {
		what = append(what, "content")
	}
	if len(what) == 0 && !b.ModTime.Equal(a.ModTime) {
		what = append(what, "time")
	}
	return strings.Join(what, ", ")
}
