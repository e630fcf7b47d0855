package mke

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mkesdk/mkesdk/hosts"
)

// Errors that a caller may want to tell apart. Test with errors.Is.
var (
	// ErrInvalid is wrong input: options or hosts that can't be meant. Nothing
	// was dialed or changed.
	ErrInvalid = errors.New("invalid input")
	// ErrLocked is another operation that holds the lock; see [LockedError].
	ErrLocked = errors.New("another operation holds the lock")
	// ErrLockLost is a lock that somebody else has taken or deleted while the
	// operation ran. What was begun is left as it is.
	ErrLockLost = errors.New("the operation lock was lost")
	// ErrOtherCluster is a host, or an API server, of another cluster.
	ErrOtherCluster = errors.New("belongs to another cluster")
	// ErrChanged is a host or cluster that is no longer as it was observed; see
	// [ChangedError]. Run the operation again.
	ErrChanged = errors.New("changed since it was observed")
	// ErrNotStable is a cluster that is not in a state to be changed.
	ErrNotStable = errors.New("cluster is not in a stable state")
	// ErrVersion is a component whose version is not the one that is needed.
	ErrVersion = errors.New("component version differs")
	// ErrNoHelper is a cluster of which no control plane host could be used.
	ErrNoHelper = errors.New("no control plane host can be used as the helper")
	// ErrStopped is an operation ended by [Options.Stop] at a safe point.
	ErrStopped = errors.New("stopped as asked")
	// ErrTimeout is a wait whose time is up; the text says what was seen last.
	ErrTimeout = errors.New("not in time")
	// ErrNotFound is an object that the cluster does not have.
	ErrNotFound = errors.New("not found")
)

// A StageError says where an operation failed.
type StageError struct {
	Operation Operation
	Stage     Stage
	// Host is the host that the failure is about; zero if it is about none.
	Host HostRef
	Err  error
}

// Error says the stage, the host and the cause.
func (e *StageError) Error() string {
	if e.Host == (HostRef{}) {
		return fmt.Sprintf("%s: %s: %v", e.Operation, e.Stage, e.Err)
	}
	return fmt.Sprintf("%s: %s: %s: %v", e.Operation, e.Stage, e.Host, e.Err)
}

// Unwrap returns the cause.
func (e *StageError) Unwrap() error { return e.Err }

// A HostError is a host that the operation refuses to touch. Running the
// operation again does not help before the host has been changed.
type HostError struct {
	// Scenario is the row of the host scenario matrix.
	Scenario hosts.Scenario
	// Why is what was seen, or what could not be observed.
	Why []string
	// Cause is the sentinel of the refusal, such as ErrOtherCluster; or nil.
	Cause error
}

// Error says the scenario and what was seen.
func (e *HostError) Error() string {
	s := fmt.Sprintf("refused: %s (scenario %s)", e.Scenario.Name, e.Scenario.Row)
	if e.Scenario.Refusal != "" {
		s += ": " + e.Scenario.Refusal
	}
	if len(e.Why) > 0 {
		s += ": " + strings.Join(e.Why, "; ")
	}
	return s
}

// Unwrap returns the sentinel of the refusal.
func (e *HostError) Unwrap() error { return e.Cause }

// A PreflightError is a host, or the cluster, that falls short of what an
// installation needs. It carries all findings of severity error.
type PreflightError struct{ Findings []hosts.Finding }

// Is matches ErrVersion if a version is among the findings.
func (e *PreflightError) Is(target error) bool {
	return target == ErrVersion && slices.ContainsFunc(e.Findings, func(f hosts.Finding) bool {
		return f.ID == hosts.CheckMKEVersion || f.ID == hosts.CheckK0sVersion
	})
}

// Error lists every finding, one a line if there are several.
func (e *PreflightError) Error() string {
	lines := make([]string, len(e.Findings))
	for i, f := range e.Findings {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// A ChangedError says what is no longer as it was observed. It matches
// [ErrChanged].
type ChangedError struct {
	What string // what was observed, such as "host 10.0.0.4 (h3)"
	Was  string // how it was when it was observed
	Now  string // how it is
}

// Error says what it was and what it is.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s has changed since it was observed: was %s, is %s: run the operation again", e.What, e.Was, e.Now)
}

// Is matches ErrChanged.
func (e *ChangedError) Is(target error) bool { return target == ErrChanged }

// A LockedError says who holds a lock. It matches [ErrLocked].
type LockedError struct {
	// Lease is the name of the lease that is held.
	Lease string
	// Lock is what its holder wrote into it.
	Lock LockInfo
	// Hint says what would help, such as adopting a stale lease.
	Hint string
}

// Error says who holds the lock, for what, on which hosts, since when and until
// when.
func (e *LockedError) Error() string {
	l := e.Lock
	s := fmt.Sprintf("another operation holds the lock %s: %s", e.Lease, l.Operation)
	if l.State != "" {
		s += " (" + l.State + ")"
	}
	if len(l.Hosts) > 0 {
		s += " of " + strings.Join(l.Hosts, ", ")
	}
	s += fmt.Sprintf(" by %s since %s", l.Client, l.Started.UTC().Format(time.RFC3339))
	if l.Stale {
		s += fmt.Sprintf("; it is stale: not renewed since %s", l.Renewed.UTC().Format(time.RFC3339))
	} else {
		s += ", valid until " + l.Expires.UTC().Format(time.RFC3339)
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// Is matches ErrLocked.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }
