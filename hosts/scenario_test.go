package hosts

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite what is generated")

// everyState calls f with every combination of what Match looks at.
func everyState(f func(State)) {
	three := tris{Unknown, No, Yes}
	var s State
	for _, s.Binary = range three {
		for _, s.Unit = range []Unit{UnitUnknown, UnitNone, UnitStopped, UnitFailed, UnitActive} {
			for _, s.InstalledFor = range []Role{"", Worker, ControllerWorker} {
				for _, s.Answers = range three {
					for _, s.CA = range []Membership{UnknownCluster, NoCluster, ThisCluster, OtherCluster} {
						for _, s.Leftovers = range three {
							for _, s.EtcdLeft = range three {
								for _, s.Node.Registered = range three {
									for _, s.Node.Ready = range three {
										for _, s.Node.SameMachine = range three {
											f(s)
										}
									}
								}
							}
						}
					}
				}
			}
		}
	}
}

// TestMatrixIsDisjoint walks the whole input space: no two rows describe one state,
// so exactly one does, row 14 taking the rest; and every row describes some state.
func TestMatrixIsDisjoint(t *testing.T) {
	t.Parallel()
	rows := matrix()
	for _, role := range Roles() {
		met := map[string]int{}
		states := 0
		everyState(func(s State) {
			states++
			first := ""
			for _, r := range rows {
				if !r.when.holds(role, s) {
					continue
				}
				if first != "" {
					t.Fatalf("rows %s and %s both describe %+v as %s", first, r.id, s, role)
				}
				first = r.id
			}
			if first == "" {
				first = "14"
			}
			met[first]++
			if got := find(rows, role, s).id; got != first {
				t.Fatalf("row %s is found for a state of row %s: %+v", got, first, s)
			}
		})
		if states != 3*5*3*3*4*3*3*3*3*3 {
			t.Fatalf("%d states walked", states)
		}
		for _, r := range rows {
			if met[r.id] == 0 {
				t.Errorf("no state of a %s falls under row %s", role, r.id)
			}
		}
		t.Logf("%s: %v of %d states", role, met, states)
	}
}

// TestUnknownNeverProceeds: whatever proceeds was observed. Only what a row does not
// depend on may be unknown.
func TestUnknownNeverProceeds(t *testing.T) {
	t.Parallel()
	rows := matrix()
	everyState(func(s State) {
		for _, op := range []Op{Add, Remove} {
			for _, role := range Roles() {
				if find(rows, role, s).id == "14" {
					continue // it refuses, whatever the state
				}
				sc := match(rows, op, role, s)
				if (sc.Action == Refuse) != (sc.Refusal != "") {
					t.Fatalf("%s %s %+v: action %s, refusal %q", op, role, s, sc.Action, sc.Refusal)
				}
				if sc.Action == Refuse {
					continue
				}
				unknown := s.Binary == Unknown || s.Unit == UnitUnknown || s.CA == UnknownCluster || s.Node.Registered == Unknown ||
					s.Node.Registered == Yes && (s.Node.Ready == Unknown || s.Node.SameMachine != Yes)
				if s.Unit == UnitNone {
					unknown = unknown || s.Answers != No || s.CA == NoCluster && s.Leftovers == Unknown
				} else {
					unknown = unknown || s.InstalledFor == "" && sc.Action != CleanUp
				}
				if role == ControllerWorker && op == Add && sc.Action.Fresh() {
					unknown = unknown || s.EtcdLeft != No
				}
				if unknown || s.CA == OtherCluster {
					t.Fatalf("%s as %s goes on with %s (row %s) on %+v", op, role, sc.Action, sc.Row, s)
				}
			}
		}
	})
}

// state makes a state of words, in the order of the matrix: binary, unit, answers,
// CA, leftovers, registered, ready, same machine.
func state(t *testing.T, words string) State {
	t.Helper()
	w := strings.Fields(words)
	if len(w) != 8 {
		t.Fatalf("%q has %d words, not 8", words, len(w))
	}
	tri := map[string]Tri{"yes": Yes, "no": No, "?": Unknown, "-": No}
	s := State{
		Binary: tri[w[0]], Answers: tri[w[2]], Leftovers: tri[w[4]], EtcdLeft: No,
		Unit: map[string]Unit{"none": UnitNone, "stopped": UnitStopped, "failed": UnitFailed, "active": UnitActive}[w[1]],
		CA:   map[string]Membership{"none": NoCluster, "this": ThisCluster, "other": OtherCluster}[w[3]],
		Node: NodeState{Registered: tri[w[5]], Ready: tri[w[6]], Cordoned: No, SameMachine: tri[w[7]]},
	}
	if s.Unit != UnitNone && s.Unit != UnitUnknown {
		s.InstalledFor = Worker
	}
	return s
}

// TestScenarios holds the matrix against the specification, row by row.
func TestScenarios(t *testing.T) {
	for _, c := range []struct {
		row, state  string
		add, remove Action
	}{
		{"0", "yes none no none no no - -", Install, Reset},
		{"1", "no none no none no no - -", Install, Deregister},
		{"2", "yes active yes this yes yes yes yes", Register, Leave},
		{"3", "yes active yes this yes yes no yes", Wait, Leave},
		{"4", "yes active yes this yes no - -", Restart, Leave},
		{"4a", "yes active no this yes yes yes yes", Wait, Leave},
		{"4a", "yes active no this yes yes no yes", Wait, Leave},
		{"4a", "yes active no this no no - -", Wait, Leave},
		{"5", "yes stopped no this yes no - -", Start, Leave},
		{"5", "yes failed no this yes yes no yes", Start, Leave},
		{"5", "yes stopped no this yes yes yes yes", Start, Leave},
		{"6", "yes active no none yes no - -", ResetInstall, Reset},
		{"6", "yes failed no none no no - -", ResetInstall, Reset},
		{"6", "yes stopped no none ? no - -", ResetInstall, Reset},
		{"7", "yes none no this yes no - -", Refuse, Reset},
		{"7", "no none no this yes no - -", Refuse, Reset},
		{"8", "yes none no this yes yes yes yes", Refuse, Leave},
		{"8", "no none no this yes yes no yes", Refuse, Leave},
		{"9", "no none no none no yes no yes", Install, Leave},
		{"9", "yes none no none no yes no yes", Install, Leave},
		{"10", "no none no none no yes yes yes", Refuse, Refuse},
		{"11", "yes active yes other yes yes yes yes", Refuse, Refuse},
		{"11", "? none ? other ? ? ? ?", Refuse, Refuse},
		{"13", "yes none no none yes no - -", ResetInstall, Reset},
		{"13", "no none no none yes no - -", ResetInstall, Reset},
		{"15", "no active no this yes yes yes yes", Refuse, CleanUp},
		{"15", "no stopped no none no no - -", Refuse, CleanUp},
		{"16", "yes active yes this yes yes yes no", Refuse, Refuse},
		{"16", "no none no none no yes no no", Refuse, Refuse},
		{"16", "? none ? none ? yes ? no", Refuse, Refuse},
		{"14", "? none no none no no - -", Refuse, Refuse},
		{"14", "no none no none ? no - -", Refuse, Refuse},
		{"14", "yes active ? this yes yes yes yes", Refuse, Refuse},
		{"14", "yes active yes this yes yes yes ?", Refuse, Refuse},
		{"14", "yes active yes none yes yes yes yes", Refuse, Refuse}, // open in the matrix
		{"14", "yes none yes none no no - -", Refuse, Refuse},         // runs, but nobody installed it
		{"14", "yes stopped yes this yes no - -", Refuse, Refuse},     // stopped, and yet it answers
	} {
		s := state(t, c.state)
		add, remove := Match(Add, Worker, s), Match(Remove, Worker, s)
		if add.Row != c.row || remove.Row != c.row || add.Action != c.add || remove.Action != c.remove {
			t.Errorf("%s: row %s, add %s, remove %s; want row %s, %s, %s", c.state, add.Row, add.Action, remove.Action, c.row, c.add, c.remove)
		}
		if add.Whole != (c.row == "11") || remove.Whole != (c.row == "11") {
			t.Errorf("%s: the whole operation is refused: %v, %v", c.state, add.Whole, remove.Whole)
		}
	}
}

// TestOtherRole: a host of the other role is refused, and a controller is never
// installed over what is left of an etcd.
func TestOtherRole(t *testing.T) {
	s := state(t, "yes active yes this yes yes yes yes")
	if sc := Match(Add, ControllerWorker, s); sc.Row != "12" || sc.Action != Refuse {
		t.Errorf("a worker added as a controller: %+v", sc)
	}
	s = state(t, "yes none no none yes no - -")
	s.EtcdLeft = Yes
	if sc := Match(Add, Worker, s); sc.Action != ResetInstall {
		t.Errorf("a worker on a host with an old etcd: %+v", sc)
	}
	if sc := Match(Add, ControllerWorker, s); sc.Row != "13" || sc.Action != Refuse || !strings.Contains(sc.Refusal, "etcd") {
		t.Errorf("a controller on a host with an old etcd: %+v", sc)
	}
	if sc := Match(Remove, ControllerWorker, s); sc.Action != Reset {
		t.Errorf("removing it: %+v", sc)
	}
}

// TestMatchIsTotal: nothing that is not asked properly is ever let through.
func TestMatchIsTotal(t *testing.T) {
	s := state(t, "no none no none no no - -")
	for _, sc := range []Scenario{Match("", Worker, s), Match("drop", Worker, s), Match(Add, "", s), Match(Add, "controller", s), Match(Add, Worker, State{})} {
		if sc.Action != Refuse || sc.Row != "14" || sc.Refusal == "" {
			t.Errorf("%+v", sc)
		}
	}
	sc := Match(Add, Worker, State{Unit: UnitNone, CA: NoCluster, Answers: No, Leftovers: No, Node: NodeState{Registered: No}})
	if !strings.Contains(sc.Refusal, "could not be observed: k0s binary") {
		t.Errorf("the refusal does not say what could not be observed: %s", sc.Refusal)
	}
}

// TestScenarioJSON: a plan carries scenarios as text.
func TestScenarioJSON(t *testing.T) {
	b, err := json.Marshal(Match(Add, Worker, state(t, "no none no none no no - -")))
	if want := `{"row":"1","name":"clean host","action":"install","do":"install"}`; err != nil || string(b) != want {
		t.Errorf("%s, %v; want %s", b, err, want)
	}
	for a := Refuse; a <= CleanUp; a++ {
		if a.String() == "" || a.String() == "invalid" {
			t.Errorf("action %d has no name", a)
		}
	}
}

// TestScenarioDocs holds the page to the table.
func TestScenarioDocs(t *testing.T) {
	const name = "../docs/scenarios.md"
	want := scenarioPage()
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the table says: go test ./hosts -run %s -update", name, t.Name())
	}
}

// cell writes what a condition accepts.
func cell[T fmt.Stringer](accepted []T) string {
	if accepted == nil {
		return "any"
	}
	var words []string
	for _, v := range accepted {
		words = append(words, v.String())
	}
	return strings.Join(words, ", ")
}

func scenarioPage() string {
	var b strings.Builder
	b.WriteString(scenarioIntro)
	for _, r := range matrix() {
		c := r.when
		role := map[roleMatch]string{anyRole: "any", sameRole: "the operation's", otherRole: "another"}[c.role]
		ready, same := cell(c.ready), cell(c.same)
		if len(c.node) == 1 && c.node[0] == No {
			ready, same = "–", "–"
		}
		cells := []string{r.id, r.name, cell(c.binary), cell(c.unit), role, cell(c.answers), cell(c.ca), cell(c.left), cell(c.node), ready, same, r.add.do, r.remove.do}
		if c.anything {
			cells = []string{r.id, r.name, "", "", "", "", "", "", "", "", "", r.add.do, r.remove.do}
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	b.WriteString(scenarioNotes)
	return b.String()
}
