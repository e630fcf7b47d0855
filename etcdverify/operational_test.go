package etcdverify_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mkesdk/mkesdk/etcdverify"
)

// A change makes something of healthy evidence, and says which topics it is to raise.
type change struct {
	name   string
	apply  func(*etcdverify.Evidence)
	topics []etcdverify.Topic
	warns  []etcdverify.Topic
	// list says that the topics can be told only by the member list.
	list bool
}

func healthy() etcdverify.Evidence {
	return etcdverify.Evidence{
		Via: "c1", ClusterID: 0xc1, AlarmsKnown: true,
		Members: []etcdverify.Member{
			{ID: 1, Name: "c1", PeerURLs: []string{"https://10.0.0.1:2380"}, Started: etcdverify.Yes, Learner: etcdverify.No},
			{ID: 2, Name: "c2", PeerURLs: []string{"https://10.0.0.2:2380"}, Started: etcdverify.Yes, Learner: etcdverify.No},
		},
		Health: []etcdverify.Health{{Host: "c1", Answered: true, Read: true, MemberID: 1, ClusterID: 0xc1, Leader: 2, DBSize: 1 << 20, DBQuota: 1 << 30}},
	}
}

type topics = []etcdverify.Topic

// The changes, one of each group at a time. The first of each group changes nothing.
func changes() [][]change {
	nothing := change{name: "-", apply: func(*etcdverify.Evidence) {}}
	member := func(f func(*etcdverify.Member)) func(*etcdverify.Evidence) {
		return func(e *etcdverify.Evidence) { f(&e.Members[1]) }
	}
	health := func(f func(*etcdverify.Health)) func(*etcdverify.Evidence) {
		return func(e *etcdverify.Evidence) {
			if len(e.Health) > 0 {
				f(&e.Health[0])
			}
		}
	}
	alarm := func(kind string) func(*etcdverify.Evidence) {
		return func(e *etcdverify.Evidence) { e.Alarms = []etcdverify.Alarm{{MemberID: 2, Type: kind}} }
	}
	db := func(size, quota int64) func(*etcdverify.Evidence) {
		return health(func(h *etcdverify.Health) { h.DBSize, h.DBQuota = size, quota })
	}
	return [][]change{
		{ // the other member
			nothing,
			{name: "learner", apply: member(func(m *etcdverify.Member) { m.Learner = etcdverify.Yes }), topics: topics{etcdverify.TopicLearnerPending}, list: true},
			{name: "nameless", apply: member(func(m *etcdverify.Member) { m.Name, m.Started = "", etcdverify.No }), topics: topics{etcdverify.TopicUnstartedMember}, list: true},
			{name: "nameless learner", apply: member(func(m *etcdverify.Member) { m.Name, m.Started, m.Learner = "", etcdverify.No, etcdverify.Yes }), topics: topics{etcdverify.TopicUnstartedMember}, list: true},
			{name: "without a name", apply: member(func(m *etcdverify.Member) { m.Name = "" }), topics: topics{etcdverify.TopicUnstartedMember}, list: true},
			{name: "not started", apply: member(func(m *etcdverify.Member) { m.Started = etcdverify.No }), topics: topics{etcdverify.TopicUnstartedMember}, list: true},
			{name: "started unknown", apply: member(func(m *etcdverify.Member) { m.Started = etcdverify.Unknown }), topics: topics{etcdverify.TopicAmbiguousSource}, list: true},
			{name: "learner unknown", apply: member(func(m *etcdverify.Member) { m.Learner = etcdverify.Unknown }), topics: topics{etcdverify.TopicAmbiguousSource}, list: true},
		},
		{ // the alarms
			nothing,
			{name: "alarms unknown", apply: func(e *etcdverify.Evidence) { e.AlarmsKnown, e.AlarmError = false, "no answer" }, topics: topics{etcdverify.TopicAmbiguousSource}},
			{name: "NOSPACE", apply: alarm("NOSPACE"), topics: topics{etcdverify.TopicAlarmNoSpace}},
			{name: "CORRUPT", apply: alarm("CORRUPT"), topics: topics{etcdverify.TopicAlarmCorrupt}},
			{name: "new alarm", apply: alarm("7"), topics: topics{etcdverify.TopicAmbiguousSource}},
		},
		{ // the member that was asked
			nothing,
			{name: "other cluster", apply: health(func(h *etcdverify.Health) { h.ClusterID = 0xc2 }), topics: topics{etcdverify.TopicForeignCluster}, list: true},
			{name: "cluster unknown", apply: health(func(h *etcdverify.Health) { h.ClusterID = 0 }), topics: topics{etcdverify.TopicForeignCluster}, list: true},
			{name: "not in the list", apply: health(func(h *etcdverify.Health) { h.MemberID = 9 }), topics: topics{etcdverify.TopicForeignCluster}, list: true},
			{name: "a learner", apply: health(func(h *etcdverify.Health) { h.Learner, h.Read = true, false }), topics: topics{etcdverify.TopicLearnerPending}},
			{name: "no leader", apply: health(func(h *etcdverify.Health) { h.Leader = 0 }), topics: topics{etcdverify.TopicNoQuorum}},
			{name: "foreign leader", apply: health(func(h *etcdverify.Health) { h.Leader = 9 }), topics: topics{etcdverify.TopicAmbiguousSource}, list: true},
			{name: "read fails", apply: health(func(h *etcdverify.Health) { h.Read, h.ReadError = false, "no answer" }), topics: topics{etcdverify.TopicNoQuorum}},
		},
		{ // its database
			nothing,
			{name: "just below 75 %", apply: db(75<<20-1, 100<<20)},
			{name: "75 %", apply: db(75<<20, 100<<20), warns: topics{etcdverify.TopicDatabaseNearQuota}},
			{name: "just below 90 %", apply: db(90<<20-1, 100<<20), warns: topics{etcdverify.TopicDatabaseNearQuota}},
			{name: "90 %", apply: db(90<<20, 100<<20), topics: topics{etcdverify.TopicDatabaseNearQuota}},
			{name: "beyond", apply: db(1<<62, 1), topics: topics{etcdverify.TopicDatabaseNearQuota}},
			{name: "quota not said, 1 GiB", apply: db(1<<30, 0)},
			{name: "quota not said, 1.6 GiB", apply: db(16<<30/10, 0), warns: topics{etcdverify.TopicDatabaseNearQuota}},
			{name: "no quota", apply: db(1<<50, -1)},
		},
		{ // what was not asked
			nothing,
			{name: "no list", apply: func(e *etcdverify.Evidence) { e.Members, e.ListError = nil, "no answer" }, topics: topics{etcdverify.TopicNoQuorum}},
		},
	}
}

// TestOperational goes through every combination of what can be seen, one of each
// group, and wants exactly the topics of the parts.
func TestOperational(t *testing.T) {
	groups := changes()
	n := 0
	var walk func(g int, picked []change)
	walk = func(g int, picked []change) {
		if g < len(groups) {
			for _, c := range groups[g] {
				walk(g+1, append(picked[:g:g], c))
			}
			return
		}
		n++
		e := healthy()
		var name []string
		var want, warn topics
		for _, c := range picked {
			c.apply(&e)
			name = append(name, c.name)
		}
		for _, c := range picked {
			if !c.list || len(e.Members) > 0 {
				want = append(want, c.topics...)
			}
			warn = append(warn, c.warns...)
		}
		check(t, strings.Join(name, ", "), e, want, warn)
	}
	walk(0, nil)
	t.Logf("%d combinations", n)
}

func check(t *testing.T, name string, e etcdverify.Evidence, want, warn topics) {
	t.Helper()
	err := etcdverify.Operational(e)
	var got, warned topics
	for _, err := range unjoin(err) {
		found, ok := errors.AsType[*etcdverify.Error](err)
		if !ok || found.Host == "" || found.Detail == "" || !strings.Contains(err.Error(), string(found.Topic)) {
			t.Errorf("%s: error %#v does not say where, what and what to read", name, err)
			continue
		}
		got = append(got, found.Topic)
	}
	for _, f := range etcdverify.Warnings(e) {
		warned = append(warned, f.Topic)
	}
	for _, f := range etcdverify.Findings(e) {
		if _, ok := etcdverify.Runbook(f.Topic); !ok {
			t.Errorf("%s: topic %q has no text", name, f.Topic)
		}
	}
	if !same(got, want) || !same(warned, warn) {
		t.Errorf("%s:\n got %v and warnings %v\nwant %v and warnings %v\n%v", name, got, warned, want, warn, err)
	}
}

// same compares two lists of topics, in any order.
func same(a, b topics) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func unjoin(err error) []error {
	if err == nil {
		return nil
	}
	return err.(interface{ Unwrap() []error }).Unwrap()
}

// TestOperationalSilence refuses what was not seen at all.
func TestOperationalSilence(t *testing.T) {
	check(t, "seen", healthy(), nil, nil)
	for name, tt := range map[string]struct {
		change func(*etcdverify.Evidence)
		want   topics
	}{
		"no member asked":       {func(e *etcdverify.Evidence) { e.Health = nil }, topics{etcdverify.TopicMemberUnreachable}},
		"member did not answer": {func(e *etcdverify.Evidence) { e.Health[0] = etcdverify.Health{Host: "c1", StatusError: "refused"} }, topics{etcdverify.TopicMemberUnreachable}},
		"one of two silent":     {func(e *etcdverify.Evidence) { e.Health = append(e.Health, etcdverify.Health{Host: "c2"}) }, topics{etcdverify.TopicMemberUnreachable}},
		"complains":             {func(e *etcdverify.Evidence) { e.Health[0].Errors = []string{"something new"} }, topics{etcdverify.TopicAmbiguousSource}},
		"complains of its alarm": {func(e *etcdverify.Evidence) {
			e.Health[0].Errors, e.Alarms = []string{"NOSPACE"}, []etcdverify.Alarm{{MemberID: 1, Type: "NOSPACE"}}
		}, topics{etcdverify.TopicAlarmNoSpace}},
	} {
		e := healthy()
		tt.change(&e)
		check(t, name, e, tt.want, nil)
	}
	if err := etcdverify.Operational(etcdverify.Evidence{}); err == nil {
		t.Error("the zero Evidence is operational")
	}
}

// TestHealthyVoter goes by the member that was asked and not by the others.
func TestHealthyVoter(t *testing.T) {
	fine := map[string]bool{ // what is wrong elsewhere
		"-": true, "learner": true, "nameless": true, "nameless learner": true, "without a name": true, "not started": true, "started unknown": true, "learner unknown": true,
		"alarms unknown": true, "NOSPACE": true, "CORRUPT": true, "new alarm": true,
		"just below 75 %": true, "75 %": true, "just below 90 %": true, "90 %": true, "beyond": true, "quota not said, 1 GiB": true, "quota not said, 1.6 GiB": true, "no quota": true,
	}
	for _, group := range changes() {
		for _, c := range group {
			e := healthy()
			c.apply(&e)
			if err := etcdverify.HealthyVoter(e); (err == nil) != fine[c.name] {
				t.Errorf("%s: %v, want fine %t", c.name, err, fine[c.name])
			}
		}
	}
	own := healthy()
	own.Alarms = []etcdverify.Alarm{{MemberID: 1, Type: etcdverify.AlarmCorrupt}}
	listed := healthy()
	listed.Members[0].Learner = etcdverify.Yes
	silent := healthy()
	silent.Health = nil
	for name, e := range map[string]etcdverify.Evidence{"own data corrupt": own, "a learner by the list": listed, "nobody asked": silent, "zero": {}} {
		if err := etcdverify.HealthyVoter(e); err == nil {
			t.Errorf("%s: fine", name)
		}
	}
}
