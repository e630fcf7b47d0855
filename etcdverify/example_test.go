package etcdverify_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mkesdk/mkesdk/etcdverify"
)

// A cluster of one member, whose second has been added and never started.
func ExampleOperational() {
	e := etcdverify.Evidence{
		Via: "c1", ClusterID: 0xc1, AlarmsKnown: true,
		Members: []etcdverify.Member{
			{ID: 0xa, Name: "c1", PeerURLs: []string{"https://10.0.0.1:2380"}, Started: etcdverify.Yes, Learner: etcdverify.No},
			{ID: 0xb, PeerURLs: []string{"https://10.0.0.2:2380"}, Started: etcdverify.No, Learner: etcdverify.Yes},
		},
		Health: []etcdverify.Health{{Host: "c1", Answered: true, Read: true, MemberID: 0xa, ClusterID: 0xc1, Leader: 0xa}},
	}
	err := etcdverify.Operational(e)
	fmt.Println(err)
	if found, ok := errors.AsType[*etcdverify.Error](err); ok {
		text, _ := etcdverify.Runbook(found.Topic)
		title, _, _ := strings.Cut(text, "\n")
		fmt.Println(title)
	}
	// Output:
	// etcd, asked on c1: member (nameless), id b, peer URLs [https://10.0.0.2:2380], a learner, has been added and never started (runbook topic unstarted-member)
	// # unstarted-member: a member was added and has never started
}
