package etcdverify_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/etcdverify"
)

// TestEvidenceJSON holds the JSON form, in which evidence is kept and handed on. Ids are
// strings: as numbers many programs would round them.
func TestEvidenceJSON(t *testing.T) {
	e := etcdverify.Evidence{
		At: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Via: "c1", ClusterID: 1<<64 - 1,
		Members: []etcdverify.Member{{ID: 1<<63 + 1, Name: "c1", PeerURLs: []string{"https://10.0.0.1:2380"}, Started: etcdverify.Yes}},
		Alarms:  []etcdverify.Alarm{{MemberID: 2, Type: "NOSPACE"}}, AlarmsKnown: true,
		Health: []etcdverify.Health{{Host: "c1", Answered: true, ReadError: "late", MemberID: 3, DBQuota: -1}},
	}
	const want = `{"at":"2026-11-30T12:00:00Z","via":"c1","clusterID":"18446744073709551615",` +
		`"members":[{"id":"9223372036854775809","name":"c1","peerURLs":["https://10.0.0.1:2380"],"started":"yes","learner":"unknown"}],` +
		`"alarms":[{"memberID":"2","type":"NOSPACE"}],"alarmsKnown":true,` +
		`"health":[{"host":"c1","answered":true,"read":false,"readError":"late","memberID":"3","clusterID":"0","leader":"0","learner":false,"version":"",` +
		`"raftIndex":"0","raftAppliedIndex":"0","dbSize":0,"dbSizeInUse":0,"dbQuota":-1}]}`
	got, err := json.Marshal(e)
	if err != nil || string(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
	var back etcdverify.Evidence
	if err := json.Unmarshal(got, &back); err != nil || !reflect.DeepEqual(back, e) {
		t.Errorf("%v\n got %+v\nwant %+v", err, back, e)
	}
}

// TestFindingJSON says a severity in words.
func TestFindingJSON(t *testing.T) {
	got, err := json.Marshal([]etcdverify.Finding{{Severity: etcdverify.Warn, Host: "c1", MemberID: 7, Topic: etcdverify.TopicDatabaseNearQuota, Detail: "d"}, {Topic: etcdverify.TopicNoQuorum}})
	const want = `[{"severity":"warn","host":"c1","memberID":"7","topic":"database-near-quota","detail":"d"},{"severity":"refuse","topic":"no-quorum","detail":""}]`
	if err != nil || string(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
}

// TestTri reads what it writes and nothing else, so that a typing error in a file is no
// quiet "unknown".
func TestTri(t *testing.T) {
	for _, v := range []etcdverify.Tri{etcdverify.Unknown, etcdverify.No, etcdverify.Yes} {
		text, _ := v.MarshalText()
		got := etcdverify.Tri(9)
		if err := got.UnmarshalText(text); err != nil || got != v {
			t.Errorf("%s: read as %s, %v", v, got, err)
		}
	}
	for _, bad := range []string{"", "Yes", "true", "1"} {
		var v etcdverify.Tri
		if err := v.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q was read as %s", bad, v)
		}
	}
	if etcdverify.TriOf(true) != etcdverify.Yes || etcdverify.TriOf(false) != etcdverify.No {
		t.Error("TriOf")
	}
}
