package etcdverify

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Bounds of a database, in percent of its quota. At the quota etcd stops to take
// writes, so that no operation should begin near it.
const (
	nearQuota   = 75 // from here: Warn
	tooNearFull = 90 // from here: Refuse
)

// defaultQuota is etcd's own, for members that do not say theirs.
const defaultQuota = 2 << 30

// Operational returns nil if the evidence says that etcd is fit for a change of
// the cluster: the linearizable list was answered, every member in it has started
// and votes, and every member asked is in it, knows a leader, belongs to the same
// cluster, serves a linearizable read, raises no alarm and has room in its
// database. Otherwise it joins an [*Error] for each that falls short; test it with
// errors.AsType.
func Operational(e Evidence) error {
	return join(e, Findings(e))
}

// Warnings returns the findings that an operation goes on with.
func Warnings(e Evidence) []Finding {
	return slices.DeleteFunc(Findings(e), func(f Finding) bool { return f.Severity != Warn })
}

// Findings returns everything about the evidence that a person should know of,
// the cluster's first, then each member's in the order of the evidence.
func Findings(e Evidence) []Finding {
	found := listed(e)
	for _, m := range e.Members {
		found = append(found, ofMember(e, m)...)
	}
	found = append(found, ofAlarms(e)...)
	if len(e.Health) == 0 {
		found = append(found, Finding{Host: e.Via, Topic: TopicMemberUnreachable, Detail: "no member was asked on its own host"})
	}
	for _, h := range e.Health {
		found = append(found, ofHealth(e, h)...)
		found = append(found, ofDatabase(h)...)
	}
	return found
}

// HealthyVoter returns nil if every member that was asked on its own host is one
// through which the cluster can be inspected: in the linearizable list as a
// voter, with a leader, serving linearizable reads, and not corrupt. What other
// members are like does not matter. Its errors are those of [Operational].
func HealthyVoter(e Evidence) error {
	found := listed(e)
	if len(e.Health) == 0 {
		found = append(found, Finding{Host: e.Via, Topic: TopicMemberUnreachable, Detail: "no member was asked on its own host"})
	}
	for _, h := range e.Health {
		found = append(found, ofHealth(e, h)...)
		for _, m := range e.Members {
			if h.Answered && m.ID == h.MemberID {
				found = append(found, ofMember(e, m)...)
			}
		}
		for _, a := range e.Alarms {
			if h.Answered && a.MemberID == h.MemberID && a.Type == AlarmCorrupt {
				found = append(found, ofAlarm(e, a))
			}
		}
	}
	return join(e, found)
}

func join(e Evidence, found []Finding) error {
	var errs []error
	for _, f := range found {
		if f.Severity == Refuse {
			errs = append(errs, &Error{Host: f.Host, MemberID: f.MemberID, Topic: f.Topic, Detail: f.Detail, At: e.At})
		}
	}
	return errors.Join(errs...)
}

// listed is about the list as a whole. It is linearizable, so that an answer
// proves a quorum, and no answer is what a lost quorum looks like.
func listed(e Evidence) []Finding {
	if len(e.Members) > 0 {
		return nil
	}
	return []Finding{{Host: e.Via, Topic: TopicNoQuorum, Detail: "the linearizable member list was not answered" + because(e.ListError)}}
}

// ofMember is about one entry of the list.
func ofMember(e Evidence, m Member) []Finding {
	f := Finding{Host: e.Via, MemberID: m.ID}
	learner := "a voter"
	if m.Learner == Yes {
		learner = "a learner"
	}
	switch {
	case m.Started == Unknown || m.Learner == Unknown:
		f.Topic = TopicAmbiguousSource
		f.Detail = fmt.Sprintf("of member %s it is not known whether it has started (%s) and whether it is a learner (%s)", m, m.Started, m.Learner)
	case m.Started == No || m.Name == "":
		f.Topic = TopicUnstartedMember
		f.Detail = fmt.Sprintf("member %s, %s, has been added and never started", m, learner)
	case m.Learner == Yes:
		f.Topic = TopicLearnerPending
		f.Detail = fmt.Sprintf("member %s is a learner: a join is under way, or was broken off", m)
	default:
		return nil
	}
	return []Finding{f}
}

// ofAlarms is about all alarms. Alarms that could not be read may be there.
func ofAlarms(e Evidence) []Finding {
	if !e.AlarmsKnown {
		return []Finding{{Host: e.Via, Topic: TopicAmbiguousSource, Detail: "the alarms could not be read" + because(e.AlarmError)}}
	}
	var found []Finding
	for _, a := range e.Alarms {
		found = append(found, ofAlarm(e, a))
	}
	return found
}

func ofAlarm(e Evidence, a Alarm) Finding {
	f := Finding{Host: e.Via, MemberID: a.MemberID, Detail: fmt.Sprintf("member %s raises the alarm %s", e.nameOf(a.MemberID), a.Type)}
	switch a.Type {
	case AlarmNoSpace:
		f.Topic = TopicAlarmNoSpace
		f.Detail += ": its database has reached its quota and etcd takes no writes"
	case AlarmCorrupt:
		f.Topic = TopicAlarmCorrupt
		f.Detail += ": its data differs from that of the other members"
	default:
		f.Topic = TopicAmbiguousSource
		f.Detail += ", which is not known here"
	}
	return f
}

// ofHealth is about one member, as it answered on its own host.
func ofHealth(e Evidence, h Health) []Finding {
	if !h.Answered {
		return []Finding{{Host: h.Host, MemberID: h.MemberID, Topic: TopicMemberUnreachable, Detail: "the member on this host did not answer for its status" + because(h.StatusError)}}
	}
	var found []Finding
	add := func(topic Topic, format string, args ...any) {
		found = append(found, Finding{Host: h.Host, MemberID: h.MemberID, Topic: topic, Detail: fmt.Sprintf(format, args...)})
	}
	at := slices.IndexFunc(e.Members, func(m Member) bool { return m.ID == h.MemberID })
	inList := len(e.Members) > 0
	switch {
	case inList && h.ClusterID != e.ClusterID:
		add(TopicForeignCluster, "the member on this host, id %x, is of cluster %x, the member list is of cluster %x", h.MemberID, h.ClusterID, e.ClusterID)
	case inList && at < 0:
		add(TopicForeignCluster, "the member on this host, id %x, is not in the member list: %s", h.MemberID, e.names())
	case h.Learner && (!inList || e.Members[at].Learner == No):
		add(TopicLearnerPending, "the member on this host, id %x, says of itself that it is a learner: it cannot vouch for the cluster", h.MemberID)
	}
	switch {
	case h.Leader == 0:
		add(TopicNoQuorum, "the member on this host, id %x, knows no leader", h.MemberID)
	case inList && !slices.ContainsFunc(e.Members, func(m Member) bool { return m.ID == h.Leader }):
		add(TopicAmbiguousSource, "the member on this host follows the leader %x, which is not in the member list: %s", h.Leader, e.names())
	}
	learner := h.Learner || at >= 0 && e.Members[at].Learner == Yes
	if !h.Read && !learner { // etcd refuses such a read to a learner by design
		add(TopicNoQuorum, "a linearizable read through the member on this host failed%s", because(h.ReadError))
	}
	// The member's own errors repeat a missing leader and its alarms; what they say
	// beyond that is not known here, and what is not known is not fine.
	if len(h.Errors) > 0 && h.Leader != 0 && len(e.Alarms) == 0 {
		add(TopicAmbiguousSource, "the member on this host, id %x, reports: %s", h.MemberID, strings.Join(h.Errors, "; "))
	}
	return found
}

// ofDatabase is about how full a member's database is.
func ofDatabase(h Health) []Finding {
	quota, assumed := h.DBQuota, ""
	if quota == 0 {
		quota, assumed = defaultQuota, " (assumed: the member does not say its own)"
	}
	if !h.Answered || quota < 0 {
		return nil
	}
	percent := share(h.DBSize, quota)
	if percent < nearQuota {
		return nil
	}
	f := Finding{Severity: Warn, Host: h.Host, MemberID: h.MemberID, Topic: TopicDatabaseNearQuota,
		Detail: fmt.Sprintf("the database of the member on this host is %s (%s in use), %d %% of its quota of %s%s",
			size(h.DBSize), size(h.DBSizeInUse), percent, size(quota), assumed)}
	if percent >= tooNearFull {
		f.Severity = Refuse
	}
	return []Finding{f}
}

// share returns how many percent of quota size is, rounded down. The quota is
// positive.
func share(size, quota int64) uint64 {
	if size <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(size), 100)
	if hi >= uint64(quota) { // more than can be said in 64 bits
		return 1 << 63
	}
	percent, _ := bits.Div64(hi, lo, uint64(quota))
	return percent
}

func size(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// because puts a reason behind what failed, if there is one.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// nameOf names a member by name and id, as far as the list knows it.
func (e Evidence) nameOf(id uint64) string {
	for _, m := range e.Members {
		if m.ID == id {
			return m.String()
		}
	}
	return fmt.Sprintf("with id %x, which is not in the member list,", id)
}

func (e Evidence) names() string {
	var names []string
	for _, m := range e.Members {
		names = append(names, fmt.Sprintf("%s (id %x)", m.Name, m.ID))
	}
	return strings.Join(names, ", ")
}
