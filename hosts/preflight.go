package hosts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The checks, by the id that a finding carries. They are stable.
const (
	CheckOS           = "os"
	CheckStorage      = "storage"
	CheckCPU          = "cpu"
	CheckMemory       = "memory"
	CheckCgroup       = "cgroup-v2"
	CheckMKEVersion   = "version-mke"
	CheckK0sVersion   = "version-k0s"
	CheckPorts        = "ports"
	CheckClock        = "clock"
	CheckIdentity     = "duplicate-identity"
	CheckLeftovers    = "leftovers"
	CheckInotify      = "inotify"
	CheckSwap         = "swap"
	CheckFirewalld    = "firewalld"
	CheckNMCloudSetup = "nm-cloud-setup"
	CheckAppArmor     = "apparmor"
)

// Severity says whether a finding stops an operation.
type Severity string

// The severities.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Finding is one pre-flight check that a host does not meet.
type Finding struct {
	ID       string   `json:"id"` // one of the Check… constants
	Severity Severity `json:"severity"`
	Host     string   `json:"host"`
	Want     string   `json:"want"`
	Got      string   `json:"got"`
}

// String returns the finding in one line.
func (f Finding) String() string {
	return f.Host + ": " + f.ID + ": want " + f.Want + ", got " + f.Got
}

// CheckError is a finding as an error.
type CheckError struct{ Finding }

// Error returns the finding in one line, and how to go on without it if it can be
// skipped.
func (e *CheckError) Error() string {
	if slices.Contains(Skippable(), e.ID) {
		return e.String() + " (can be skipped: " + e.ID + ")"
	}
	return e.String()
}

// Errors returns the findings that stop an operation, joined, each a
// [*CheckError]; nil if there is none.
func Errors(findings []Finding) error {
	var errs []error
	for _, f := range findings {
		if f.Severity != Warning {
			errs = append(errs, &CheckError{f})
		}
	}
	return errors.Join(errs...)
}

// Skippable returns the ids of the checks that can be switched off.
func Skippable() []string { return []string{CheckOS, CheckStorage, CheckCPU, CheckMemory} }

// ValidateSkips says which of the ids cannot be skipped, because there is no such
// check or because it is not up to anyone.
func ValidateSkips(skip ...string) error {
	var errs []error
	for _, id := range skip {
		if !slices.Contains(Skippable(), id) {
			errs = append(errs, fmt.Errorf("the check %q cannot be skipped: want one of %s", id, strings.Join(Skippable(), ", ")))
		}
	}
	return errors.Join(errs...)
}

// check is one check of a host: what it finds, without the id and the host.
type check struct {
	id   string
	find func(f Facts, r Role, b Bounds) []Finding
}

// hostChecks are the checks that look at one host alone, in the order of the
// documentation.
func hostChecks() []check {
	return []check{
		{CheckOS, findOS},
		{CheckStorage, findStorage},
		{CheckCPU, findCPU},
		{CheckMemory, findMemory},
		{CheckCgroup, findCgroup},
		{CheckPorts, findPorts},
		{CheckClock, findClock},
		{CheckLeftovers, findLeftovers},
		{CheckInotify, findInotify},
		{CheckSwap, findSwap},
		{CheckFirewalld, findFirewalld},
		{CheckNMCloudSetup, findNMCloudSetup},
		{CheckAppArmor, findAppArmor},
	}
}

// Check holds the facts of a host that is about to get a fresh install against the
// bounds, and returns everything that is not met, in the order of the
// documentation. What a bound needs and was not observed is not met. A check whose
// id is among skip is not made, if it is one of [Skippable]. For an unknown role
// nothing fits, so that is the finding.
func Check(host string, f Facts, r Role, b Bounds, skip ...string) []Finding {
	if !r.Valid() {
		return []Finding{{ID: "role", Severity: Error, Host: host, Want: "worker or controller+worker", Got: fmt.Sprintf("%q", r)}}
	}
	b = b.withDefaults()
	var all []Finding
	for _, c := range hostChecks() {
		if slices.Contains(skip, c.id) && slices.Contains(Skippable(), c.id) {
			continue
		}
		for _, found := range c.find(f, r, b) {
			found.ID, found.Host = c.id, host
			all = append(all, found)
		}
	}
	return all
}
