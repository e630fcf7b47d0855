package hosts

import (
	"slices"
	"strings"
)

// A condition is what a row of the matrix demands of a state. A nil set accepts
// anything, the unknown too; so a row that proceeds names what it needs.
type condition struct {
	binary   tris
	unit     units
	role     roleMatch
	answers  tris
	ca       memberships
	left     tris
	node     tris // registered
	ready    tris // looked at only where the node is registered, as is same
	same     tris
	anything bool // row 14: whatever no other row describes
}

// roleMatch is what a row demands of the role that the service was installed for.
type roleMatch uint8

const (
	anyRole   roleMatch = iota
	sameRole            // the role of the operation
	otherRole           // another one
)

// holds says whether s meets c in an operation on role.
func (c condition) holds(role Role, s State) bool {
	switch c.role {
	case sameRole:
		if s.InstalledFor != role {
			return false
		}
	case otherRole:
		if s.InstalledFor == "" || s.InstalledFor == role {
			return false
		}
	}
	if s.Node.Registered != No && (!c.ready.has(s.Node.Ready) || !c.same.has(s.Node.SameMachine)) {
		return false
	}
	return !c.anything && c.binary.has(s.Binary) && c.unit.has(s.Unit) && c.answers.has(s.Answers) &&
		c.ca.has(s.CA) && c.left.has(s.Leftovers) && c.node.has(s.Node.Registered)
}

// A doing is what an operation does in a row.
type doing struct {
	action  Action
	do      string
	refusal string
	whole   bool
}

// A row of the matrix.
type row struct {
	id     string
	name   string
	when   condition
	add    doing
	remove doing
}

func (r row) scenario(d doing) Scenario {
	return Scenario{Row: r.id, Name: r.name, Action: d.action, Do: d.do, Refusal: d.refusal, Whole: d.whole}
}

// The sets that the rows are made of.
func yes() tris            { return tris{Yes} }
func no() tris             { return tris{No} }
func known() tris          { return tris{No, Yes} }
func noUnit() units        { return units{UnitNone} }
func installed() units     { return units{UnitStopped, UnitFailed, UnitActive} }
func this() memberships    { return memberships{ThisCluster} }
func noTrace() memberships { return memberships{NoCluster} }

const removeFirst = "remove the host first, then add it"

// matrix is the scenario matrix. Its rows exclude each other, so their order is
// that of the documentation and decides nothing.
func matrix() []row {
	return []row{
		{"0", "clean host with the k0s binary installed",
			condition{binary: yes(), unit: noUnit(), answers: no(), ca: noTrace(), left: no(), node: no()},
			doing{action: Install, do: "install"},
			doing{action: Reset, do: "reset, best effort"}},
		{"1", "clean host",
			condition{binary: no(), unit: noUnit(), answers: no(), ca: noTrace(), left: no(), node: no()},
			doing{action: Install, do: "install"},
			doing{action: Deregister, do: "only take it out of MkeConfig, and report that"}},
		{"2", "part of this cluster, node ready, same machine",
			condition{binary: yes(), unit: units{UnitActive}, role: sameRole, answers: yes(), ca: this(), node: yes(), ready: yes(), same: yes()},
			doing{action: Register, do: "only register it in MkeConfig, and report that"},
			doing{action: Leave, do: "remove"}},
		{"3", "part of this cluster, node not ready",
			condition{binary: yes(), unit: units{UnitActive}, role: sameRole, answers: yes(), ca: this(), node: yes(), ready: no(), same: yes()},
			doing{action: Wait, do: "wait for readiness"},
			doing{action: Leave, do: "remove"}},
		{"4", "runs, never registered",
			condition{binary: yes(), unit: units{UnitActive}, role: sameRole, answers: yes(), ca: this(), node: no()},
			doing{action: Restart, do: "restart the service, with a new token if there is no kubelet.conf yet"},
			doing{action: Leave, do: "remove, without a drain"}},
		{"4a", "starting",
			condition{binary: yes(), unit: units{UnitActive}, role: sameRole, answers: no(), ca: this(), node: known(), ready: known(), same: yes()},
			doing{action: Wait, do: "wait for it to answer, up to the readiness time-out, then as 2, 3 or 4"},
			doing{action: Leave, do: "remove, with the time-outs of a hung service"}},
		{"5", "installed for this cluster, service stopped or failed",
			condition{binary: yes(), unit: units{UnitStopped, UnitFailed}, role: sameRole, answers: no(), ca: this(), node: known(), ready: known(), same: yes()},
			doing{action: Start, do: "`reset-failed`, start, then as 2, 3 or 4"},
			doing{action: Leave, do: "remove"}},
		{"6", "install interrupted before the CA arrived",
			condition{binary: yes(), unit: installed(), role: sameRole, answers: known(), ca: noTrace(), node: no()},
			doing{action: ResetInstall, do: "reset, then install"},
			doing{action: Reset, do: "reset"}},
		{"7", "no service, data of this cluster",
			condition{binary: known(), unit: noUnit(), answers: no(), ca: this(), node: no()},
			doing{do: "refuse", refusal: "data of this cluster is left on it: " + removeFirst},
			doing{action: Reset, do: "reset"}},
		{"8", "no service, data of this cluster, node still registered",
			condition{binary: known(), unit: noUnit(), answers: no(), ca: this(), node: yes(), ready: known(), same: yes()},
			doing{do: "refuse", refusal: "data of this cluster is left on it and its node is still registered: " + removeFirst},
			doing{action: Leave, do: "remove"}},
		{"9", "re-imaged: nothing on the host, its node still registered and not ready",
			condition{binary: known(), unit: noUnit(), answers: no(), ca: noTrace(), left: no(), node: yes(), ready: no(), same: yes()},
			doing{action: Install, do: "install, un-cordon after"},
			doing{action: Leave, do: "remove (drain, delete the Node)"}},
		{"10", "nothing on the host, but the node is ready",
			condition{binary: known(), unit: noUnit(), answers: no(), ca: noTrace(), left: no(), node: yes(), ready: yes(), same: yes()},
			doing{do: "refuse", refusal: "another machine holds this node name: give the host a name of its own"},
			doing{do: "refuse", refusal: "another machine holds this node name, and is Ready: remove that one by its own address"}},
		{"11", "belongs to another cluster",
			condition{ca: memberships{OtherCluster}},
			doing{do: "**refuse the whole operation**", refusal: "it belongs to another cluster: take it out of there and reset it, or leave it out of this operation", whole: true},
			doing{do: "**refuse the whole operation**", refusal: "it belongs to another cluster: leave it out of this operation", whole: true}},
		{"12", "installed for the other role",
			condition{binary: yes(), unit: installed(), role: otherRole, ca: this(), same: tris{Unknown, Yes}},
			doing{do: "refuse", refusal: "k0s is installed on it for the other role: " + removeFirst},
			doing{do: "refuse", refusal: "k0s is installed on it for the other role: remove it in an operation on that role"}},
		{"13", "a previous reset failed half-way: something is left, no CA of the cluster",
			condition{binary: known(), unit: noUnit(), answers: no(), ca: noTrace(), left: yes(), node: no()},
			doing{action: ResetInstall, do: "reset again, then install; if that fails, refuse and ask for a reboot"},
			doing{action: Reset, do: "reset"}},
		{"15", "a service without a binary",
			condition{binary: no(), unit: installed(), ca: memberships{NoCluster, ThisCluster}, node: known(), ready: known(), same: yes()},
			doing{do: "refuse", refusal: "a k0s service is installed on it, but there is no k0s binary that runs: " + removeFirst},
			doing{action: CleanUp, do: "clean up by hand: the unit, and what the other rows would reset"}},
		{"16", "node registered, but it is another machine",
			condition{ca: memberships{UnknownCluster, NoCluster, ThisCluster}, node: yes(), same: no()},
			doing{do: "refuse", refusal: "another machine holds this node name: give the host a name of its own, or remove that node"},
			doing{do: "refuse", refusal: "another machine holds this node name: removing this host would remove that node"}},
		lastRow(),
	}
}

// lastRow is row 14, which takes whatever no other row describes.
func lastRow() row {
	return row{"14", "anything unknown, or no other row",
		condition{anything: true},
		doing{do: "refuse, and say what could not be observed", refusal: "what was observed of it fits no scenario"},
		doing{do: "refuse unless forced", refusal: "what was observed of it fits no scenario"}}
}

// etcdLeft takes the place of an installation on a controller that has something
// of an earlier etcd: old data under a new member id never joins, and an old CA
// that is there is kept, so that the join fails once the membership has changed.
func etcdLeft() doing {
	return doing{do: "refuse", refusal: "an etcd database or an etcd CA of an earlier membership is left on it, or could not be looked for: " + removeFirst}
}

// explain says in words what was seen, for a host that fits no row.
func (r row) explain(s State) string {
	var unknown []string
	for _, o := range []struct {
		name    string
		unknown bool
	}{
		{"k0s binary", s.Binary == Unknown},
		{"k0s service", s.Unit == UnitUnknown},
		{"k0s status", s.Answers == Unknown},
		{"cluster CA", s.CA == UnknownCluster},
		{"leftovers", s.Leftovers == Unknown},
		{"node", s.Node.Registered == Unknown},
		{"node readiness", s.Node.Registered == Yes && s.Node.Ready == Unknown},
		{"whether the node is this machine's", s.Node.Registered == Yes && s.Node.SameMachine == Unknown},
	} {
		if o.unknown {
			unknown = append(unknown, o.name)
		}
	}
	text := ""
	if len(unknown) > 0 {
		text += "; could not be observed: " + strings.Join(unknown, ", ")
	}
	if seen := s.seen(); len(seen) > 0 {
		text += "; seen: " + strings.Join(seen, ", ")
	}
	return text
}

// seen says in words what was observed.
func (s State) seen() []string {
	service := "service " + s.Unit.String()
	if s.InstalledFor != "" {
		service += " (" + string(s.InstalledFor) + ")"
	}
	seen := []string{
		"binary " + s.Binary.String(), service, "k0s status answers " + s.Answers.String(), "cluster CA " + s.CA.String(),
		"leftovers " + s.Leftovers.String(), "node registered " + s.Node.Registered.String(),
	}
	if s.Node.Registered == Yes {
		seen = append(seen, "ready "+s.Node.Ready.String(), "same machine "+s.Node.SameMachine.String())
	}
	return slices.DeleteFunc(seen, func(text string) bool { return strings.Contains(text, "unknown") })
}
