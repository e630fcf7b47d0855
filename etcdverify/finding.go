package etcdverify

import (
	"fmt"
	"time"
)

// Severity says what a finding means for an operation.
type Severity uint8

// The severities. The zero Severity refuses.
const (
	Refuse Severity = iota // no operation goes on
	Warn                   // an operation goes on and says so
)

// String returns "refuse" or "warn".
func (s Severity) String() string {
	if s == Warn {
		return "warn"
	}
	return "refuse"
}

// MarshalText writes what String returns.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Finding is something about a cluster's etcd that a person should know of.
type Finding struct {
	Severity Severity `json:"severity"`
	// Host is where it was seen.
	Host string `json:"host,omitempty"`
	// MemberID is the member that it is about, 0 if it is about the cluster.
	MemberID uint64 `json:"memberID,string,omitempty"`
	Topic    Topic  `json:"topic"`
	// Detail is what was seen, in words.
	Detail string `json:"detail"`
}

// String says what was seen, where, and what to read about it.
func (f Finding) String() string {
	if f.Host == "" {
		return fmt.Sprintf("etcd: %s (runbook topic %s)", f.Detail, f.Topic)
	}
	return fmt.Sprintf("etcd, asked on %s: %s (runbook topic %s)", f.Host, f.Detail, f.Topic)
}

// An Error is a finding that no operation goes on with. Trying again does not
// help: a person has to follow the runbook first. See [Runbook] for its text.
type Error struct {
	Host     string
	MemberID uint64 // 0 if it is about the cluster
	Topic    Topic
	Detail   string
	// At is when the evidence was gathered; the zero time if that is not known.
	At time.Time
}

// Error says what was seen, where and when, and what to read about it.
func (e *Error) Error() string {
	s := Finding{Host: e.Host, MemberID: e.MemberID, Topic: e.Topic, Detail: e.Detail}.String()
	if !e.At.IsZero() {
		s += ", seen at " + e.At.UTC().Format(time.RFC3339)
	}
	return s
}
