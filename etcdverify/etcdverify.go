// Package etcdverify says whether the etcd of a cluster is fit to be changed.
//
// It computes and does nothing else: from [Evidence], which somebody gathered, to
// findings, each of which names a topic of the runbook. It opens no connection,
// repairs nothing and imports only the standard library. The same evidence gives
// the same findings.
//
// What was not observed never counts in a cluster's favour: the zero Evidence is
// refused.
package etcdverify

import (
	"fmt"
	"time"
)

// Tri is something that was observed to be so, or not so, or could not be
// observed. Its text form, in JSON too, is "unknown", "no" or "yes".
type Tri uint8

// The three values. The zero Tri is Unknown.
const (
	Unknown Tri = iota
	No
	Yes
)

// TriOf returns Yes or No.
func TriOf(b bool) Tri {
	if b {
		return Yes
	}
	return No
}

// String returns "unknown", "no" or "yes".
func (t Tri) String() string {
	switch t {
	case No:
		return "no"
	case Yes:
		return "yes"
	}
	return "unknown"
}

// MarshalText writes what String returns.
func (t Tri) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what String returns and nothing else.
func (t *Tri) UnmarshalText(text []byte) error {
	for _, v := range []Tri{Unknown, No, Yes} {
		if string(text) == v.String() {
			*t = v
			return nil
		}
	}
	return fmt.Errorf("%q is not one of unknown, no, yes", text)
}

// Member is an entry of the raw member list, which is what etcd counts toward
// quorum.
type Member struct {
	ID       uint64   `json:"id,string"`
	Name     string   `json:"name"` // empty until the member has started
	PeerURLs []string `json:"peerURLs"`
	Started  Tri      `json:"started"`
	Learner  Tri      `json:"learner"`
}

// String returns the member's name, id and peer URLs, as far as they are known.
func (m Member) String() string {
	name := m.Name
	if name == "" {
		name = "(nameless)"
	}
	return fmt.Sprintf("%s, id %x, peer URLs %v", name, m.ID, m.PeerURLs)
}

// Alarm is an alarm that a member has raised. It stays until somebody disarms it.
type Alarm struct {
	MemberID uint64 `json:"memberID,string"`
	Type     string `json:"type"` // as etcd names it: AlarmNoSpace, AlarmCorrupt, or one that is new
}

// The types of alarms that etcd has.
const (
	AlarmNoSpace = "NOSPACE"
	AlarmCorrupt = "CORRUPT"
)

// Health is what the member on a host said of itself, asked on that very host:
// every member of a k0s cluster advertises the loopback address, so that to ask
// for another one from here is to ask the same member again. The zero Health is a
// member that gave no answer.
type Health struct {
	Host     string `json:"host"`     // where it was asked
	Answered bool   `json:"answered"` // it answered a request for its status
	// StatusError says why it did not.
	StatusError string `json:"statusError,omitempty"`
	// Read reports that a linearizable read through the member succeeded, which
	// takes a quorum; ReadError says why it did not.
	Read      bool   `json:"read"`
	ReadError string `json:"readError,omitempty"`

	MemberID  uint64 `json:"memberID,string"`
	ClusterID uint64 `json:"clusterID,string"`
	Leader    uint64 `json:"leader,string"` // id of the leader it knows; 0 if none
	Learner   bool   `json:"learner"`
	Version   string `json:"version"`
	// RaftIndex is the last index that it knows to be committed, RaftAppliedIndex
	// the last that it has applied.
	RaftIndex        uint64 `json:"raftIndex,string"`
	RaftAppliedIndex uint64 `json:"raftAppliedIndex,string"`

	// DBSize is the size of its database file in bytes, DBSizeInUse what would be
	// left of it after a defragmentation.
	DBSize      int64 `json:"dbSize"`
	DBSizeInUse int64 `json:"dbSizeInUse"`
	// DBQuota is the size at which etcd stops to take writes, in bytes. 0 if the
	// member does not say (before etcd 3.6), then etcd's default of 2 GiB is
	// assumed; negative if it has none.
	DBQuota int64 `json:"dbQuota"`
	// Errors are what the member itself reports to be wrong, in its own words.
	Errors []string `json:"errors,omitempty"`
}

// Evidence is what was seen of a cluster's etcd. It is plain data with a stable
// JSON form: fields are added, never renamed.
type Evidence struct {
	At  time.Time `json:"at"`  // when gathering began
	Via string    `json:"via"` // the host that was asked for list and alarms

	ClusterID uint64 `json:"clusterID,string"` // as the answer with the list said
	// Members are the linearizable member list. It is never empty if it was
	// answered; ListError says why it was not.
	Members   []Member `json:"members"`
	ListError string   `json:"listError,omitempty"`

	// Alarms are all that are raised, of every member. They mean something only
	// if AlarmsKnown; AlarmError says why they are not known.
	Alarms      []Alarm `json:"alarms,omitempty"`
	AlarmsKnown bool    `json:"alarmsKnown"`
	AlarmError  string  `json:"alarmError,omitempty"`

	// Health has one entry for each member that was asked on its own host.
	Health []Health `json:"health"`
}
