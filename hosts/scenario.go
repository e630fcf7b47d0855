package hosts

import "slices"

// Action is what an operation does with a host.
type Action uint8

// The actions. The zero value is Refuse.
const (
	Refuse Action = iota

	// Of an addition.
	Install      // install k0s and join
	ResetInstall // reset what an earlier attempt left, then as Install
	Register     // only list the host in MkeConfig
	Wait         // wait for it to answer and its node to be Ready
	Restart      // restart the service, so that registration is tried again
	Start        // reset-failed, start, then as the rows of a running host

	// Of a removal.
	Leave      // the whole removal
	Reset      // only the host is reset
	Deregister // only taken out of MkeConfig
	CleanUp    // no binary to reset with: what a reset would do, by hand
)

var actionNames = [...]string{
	Refuse: "refuse", Install: "install", ResetInstall: "reset-install", Register: "register", Wait: "wait",
	Restart: "restart", Start: "start", Leave: "leave", Reset: "reset", Deregister: "deregister", CleanUp: "clean-up",
}

// String returns the action's name, in lower case.
func (a Action) String() string {
	if int(a) < len(actionNames) {
		return actionNames[a]
	}
	return "invalid"
}

// MarshalText writes a as String does.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// Fresh says whether the host is to receive a new k0s install.
func (a Action) Fresh() bool { return a == Install || a == ResetInstall }

// Scenario is the row of the matrix that a host falls under.
type Scenario struct {
	// Row is the row's number as the documentation has it, "4a" among them.
	Row string `json:"row"`
	// Name says what the host is, in a few words.
	Name string `json:"name"`
	// Action is what the operation does with it.
	Action Action `json:"action"`
	// Do says the same in the words of the matrix.
	Do string `json:"do"`
	// Refusal says why, and what would be right. Empty unless Action is Refuse.
	Refusal string `json:"refusal,omitempty"`
	// Whole says that the host refuses the whole operation, whatever the other
	// hosts are.
	Whole bool `json:"whole,omitempty"`
}

// Match returns the one row of the matrix that a host in state s falls under. It
// is total: what no row describes, and what could not be observed where a row
// needs it, falls under row 14 and is refused, as is an Op or a Role that there
// is not.
func Match(op Op, role Role, s State) Scenario { return match(matrix(), op, role, s) }

func match(rows []row, op Op, role Role, s State) Scenario {
	r := find(rows, role, s)
	var sc Scenario
	switch op {
	case Add:
		sc = r.scenario(r.add)
		if role == ControllerWorker && sc.Action.Fresh() && s.EtcdLeft != No {
			sc = r.scenario(etcdLeft())
		}
	case Remove:
		sc = r.scenario(r.remove)
	default:
		r = lastRow()
		sc = r.scenario(r.add)
	}
	if r.id == lastRow().id && sc.Action == Refuse {
		sc.Refusal += r.explain(s)
	}
	return sc
}

// find returns the row that describes s, the last one if no other does.
func find(rows []row, role Role, s State) row {
	if role.Valid() {
		for _, r := range rows {
			if r.when.holds(role, s) {
				return r
			}
		}
	}
	return rows[len(rows)-1]
}

// tris, units and memberships are what a condition of the matrix accepts;
// nil accepts anything, the unknown too.
type (
	tris        []Tri
	units       []Unit
	memberships []Membership
)

func (t tris) has(v Tri) bool               { return t == nil || slices.Contains(t, v) }
func (u units) has(v Unit) bool             { return u == nil || slices.Contains(u, v) }
func (m memberships) has(v Membership) bool { return m == nil || slices.Contains(m, v) }
