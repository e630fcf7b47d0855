package control

import (
	"errors"
	"fmt"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
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

// Ensure makes the users that do not exist, with the tools of the host.
func (u SystemUsers) Ensure(home string) error {
	var errs []error
	for _, name := range u.Names() {
		if _, ok := uid(name); ok {
			continue
		}
		shell, err := exec.LookPath("nologin")
		if err != nil {
			shell = "/bin/false"
		}
		if err := firstOf(
			[]string{"useradd", "--home", home, "--shell", shell, "--system", "--no-create-home", name},
			[]string{"adduser", "-S", "-D", "-H", "-h", home, "-s", shell, name},
		); err != nil {
			errs = append(errs, fmt.Errorf("user %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// Delete removes those of the users that exist.
func (u SystemUsers) Delete() error {
	var errs []error
	for _, name := range u.Names() {
		if _, ok := uid(name); !ok {
			continue
		}
		if err := firstOf([]string{"userdel", name}, []string{"deluser", name}); err != nil {
			errs = append(errs, fmt.Errorf("user %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// firstOf runs the first of the commands that the host has.
func firstOf(commands ...[]string) error {
	err := error(exec.ErrNotFound)
	for _, c := range commands {
		var out []byte
		if out, err = exec.Command(c[0], c[1:]...).CombinedOutput(); !errors.Is(err, exec.ErrNotFound) {
			if err != nil {
				return fmt.Errorf("%s: %w: %s", c[0], err, out)
			}
			return nil
		}
	}
	return err
}

// uid is the number of a user, and whether it exists.
func uid(name string) (int, bool) {
	u, err := user.Lookup(name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.Atoi(u.Uid)
	return n, err == nil
}
