package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/pflag"
)

// A usageError is a command line that can't be meant.
type usageError struct {
	command string
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// later are flags that the documentation of MKE gives to this command and that
// this version can't honour. An unknown flag of that name gets a reason.
var later = map[string]string{
	"dry-run":                           "this version can't plan an operation without doing it",
	"etcd-members-join-timeout-minutes": "it is about control plane nodes, and this version adds workers only",
	"force":                             "no check of an addition can be forced; see --skip-preflight",
	"include-logs":                      "this version collects no logs",
	"audit":                             "this version writes no audit log",
	"file":                              "the cluster's configuration is read from the cluster; --hosts-path names the hosts",
	"name":                              backups,
	"passphrase":                        backups,
	"no-passphrase":                     backups,
	"skip-snapshot":                     backups,
	"temp-dir":                          backups,
}

const backups = "it is about the backups around a control plane operation, and this version adds workers only"

// kinder says more of a flag that there is elsewhere.
func kinder(err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return err
	}
	name := unknown.GetSpecifiedName()
	if unknown.GetSpecifiedShortnames() != "" && name == "f" {
		name = "file"
	}
	if why, ok := later[name]; ok {
		return fmt.Errorf("--%s is not there: %s", name, why)
	}
	return err
}

// positive says which of the flags is not above zero.
func positive[T int | int64](flags map[string]T) error {
	var errs []error
	for _, name := range sortedKeys(flags) {
		if flags[name] <= 0 {
			errs = append(errs, fmt.Errorf("--%s must be more than 0", name))
		}
	}
	return errors.Join(errs...)
}

// fileError says what is wrong with a file that a flag names.
func fileError(flag, path, want string, err error) error {
	var cause error = err
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		cause = e.Err
	}
	return fmt.Errorf("%s %s: %w: %s", flag, path, cause, strings.TrimSpace(want))
}
