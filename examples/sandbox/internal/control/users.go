package control

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// SystemUsers are the names of the users that a controller's processes run as.
type SystemUsers struct {
	Etcd         string `json:"etcdUser"`
	Kine         string `json:"kineUser"`
	Konnectivity string `json:"konnectivityUser"`
	APIServer    string `json:"kubeAPIserverUser"`
	Scheduler    string `json:"kubeSchedulerUser"`
}

// Names are the users without doubles, sorted.
func (u SystemUsers) Names() []string {
	names := []string{u.Etcd, u.Kine, u.Konnectivity, u.APIServer, u.Scheduler}
	names = slices.DeleteFunc(names, func(s string) bool { return s == "" })
	slices.Sort(names)
	return slices.Compact(names)
}

// accounts are the files below /etc that make a user. The hosts of the sandbox need not have the
// programs that the real k0s calls for this, so the files are edited here.
var accounts = [...]string{"passwd", "group", "shadow", "gshadow"}

// firstSystemID is where system users are counted down from.
const firstSystemID = 999

// Ensure makes the users that do not exist, each with a group of its name and the home given.
func (u SystemUsers) Ensure(home string) error { return u.ensure("/etc", home) }

// Delete removes those of the users that exist.
func (u SystemUsers) Delete() error { return u.delete("/etc") }

func (u SystemUsers) ensure(etc, home string) error {
	var errs []error
	for _, name := range u.Names() {
		if _, ok := lookup(etc, name); ok {
			continue
		}
		id, err := freeID(etc)
		if err != nil {
			return err
		}
		lines := [len(accounts)]string{
			fmt.Sprintf("%s:x:%d:%d::%s:%s", name, id, id, home, nologin()),
			fmt.Sprintf("%s:x:%d:", name, id),
			name + ":!:::::::",
			name + ":!::",
		}
		for i, file := range accounts {
			if err := addLine(filepath.Join(etc, file), lines[i]); err != nil {
				errs = append(errs, fmt.Errorf("user %s: %w", name, err))
			}
		}
	}
	return errors.Join(errs...)
}

func (u SystemUsers) delete(etc string) error {
	var errs []error
	for _, name := range u.Names() {
		if _, ok := lookup(etc, name); !ok {
			continue
		}
		for _, file := range accounts {
			if err := dropLines(filepath.Join(etc, file), name+":"); err != nil {
				errs = append(errs, fmt.Errorf("user %s: %w", name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// uid is the number of a user, and whether it exists.
func uid(name string) (int, bool) { return lookup("/etc", name) }

func lookup(etc, name string) (int, bool) {
	for fields := range entries(filepath.Join(etc, "passwd")) {
		if fields[0] == name {
			n, err := strconv.Atoi(fields[2])
			return n, err == nil
		}
	}
	return 0, false
}

// freeID is the highest number below 1000 that is neither a user's nor a group's.
func freeID(etc string) (int, error) {
	taken := map[string]bool{}
	for _, file := range []string{"passwd", "group"} {
		for fields := range entries(filepath.Join(etc, file)) {
			taken[fields[2]] = true
		}
	}
	for id := firstSystemID; id > 100; id-- {
		if !taken[strconv.Itoa(id)] {
			return id, nil
		}
	}
	return 0, errors.New("no number is free for a system user")
}

// entries gives the fields of a file's lines, of those that have at least three.
func entries(file string) func(func([]string) bool) {
	return func(yield func([]string) bool) {
		data, err := os.ReadFile(file)
		if err != nil {
			return
		}
		for line := range strings.Lines(string(data)) {
			if f := strings.Split(strings.TrimSpace(line), ":"); len(f) >= 3 && !yield(f) {
				return
			}
		}
	}
}

func nologin() string {
	for _, path := range []string{"/usr/sbin/nologin", "/sbin/nologin"} {
		if exists(path) {
			return path
		}
	}
	return "/bin/false"
}

// addLine appends a line to a file, if the file is there.
func addLine(file, line string) error {
	return edit(file, func(data []byte) []byte {
		if len(data) > 0 && data[len(data)-1] != '\n' {
			data = append(data, '\n')
		}
		return append(data, line+"\n"...)
	})
}

func dropLines(file, prefix string) error {
	return edit(file, func(data []byte) []byte {
		var keep []byte
		for line := range bytes.Lines(data) {
			if !bytes.HasPrefix(line, []byte(prefix)) {
				keep = append(keep, line...)
			}
		}
		return keep
	})
}

// edit replaces a file by what becomes of its contents, with the same mode and owner. One that is
// not there is left so.
func edit(file string, change func([]byte) []byte) error {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if err := replaceFile(file, change(data), info.Mode().Perm(), -1); err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		return os.Chown(file, int(st.Uid), int(st.Gid))
	}
	return nil
}
