package etcdverify

import (
	"embed"
	"slices"
	"strings"
)

// A Topic names a section of the runbook, in docs/runbook.md and in [Runbook].
// The names are stable.
type Topic string

// The topics that a finding can have. More come as the package learns to see
// more.
const (
	TopicNoQuorum          Topic = "no-quorum"
	TopicMemberUnreachable Topic = "member-unreachable"
	TopicLearnerPending    Topic = "learner-pending"
	TopicUnstartedMember   Topic = "unstarted-member"
	TopicForeignCluster    Topic = "foreign-cluster"
	TopicAmbiguousSource   Topic = "ambiguous-source"
	TopicAlarmNoSpace      Topic = "alarm-nospace"
	TopicAlarmCorrupt      Topic = "alarm-corrupt"
	TopicDatabaseNearQuota Topic = "database-near-quota"
)

// Topics returns every topic that has a text, in the order of the runbook: what
// takes the cluster down comes first.
func Topics() []Topic {
	return []Topic{
		TopicNoQuorum, TopicMemberUnreachable, TopicAlarmCorrupt, TopicAlarmNoSpace, TopicDatabaseNearQuota,
		TopicUnstartedMember, TopicLearnerPending, TopicForeignCluster, TopicAmbiguousSource,
	}
}

//go:embed runbook/*.md
var texts embed.FS

// ask is how to put a question to the member on a host, where k0s ships no etcdctl. The texts say
// {{ask}} in its place.
//
//go:embed ask.md
var ask string

// Runbook returns the text of a topic as Markdown, its title in the first line, and
// whether there is one.
func Runbook(topic Topic) (text string, ok bool) {
	if !slices.Contains(Topics(), topic) {
		return "", false
	}
	data, err := texts.ReadFile("runbook/" + string(topic) + ".md")
	if err != nil {
		return "", false
	}
	text = strings.ReplaceAll(string(data), "{{ask}}", strings.TrimSpace(ask))
	return strings.TrimSpace(text) + "\n", true
}
