package hosts

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Observe turns the facts of a host and a view of the cluster into the state that
// [Match] decides on. It is pure. What could not be observed stays unknown, and
// State.Why says why.
func Observe(f Facts, cl ClusterView) State {
	s := State{
		Binary:      f.K0s.Binary,
		Answers:     f.K0s.Answers,
		KubeletConf: f.K0s.KubeletConf,
		Leftovers:   f.Leftovers.Any(),
		EtcdLeft:    anyOf(f.Leftovers.EtcdCA, f.Leftovers.EtcdData),
	}
	if s.Binary == Unknown {
		s.why("whether %s runs could not be told", f.K0s.Path)
	}
	if s.Answers == Unknown {
		s.why("what k0s status prints could not be read")
	}
	s.observeService(f.K0s)
	s.observeCA(f.CA, cl.CAFingerprint)
	s.observeNode(f, cl)
	if s.Leftovers == Unknown {
		s.why("whether an earlier k0s has left something below %s could not be told", f.DataDir)
	}
	return s
}

func (s *State) why(format string, args ...any) { s.Why = append(s.Why, fmt.Sprintf(format, args...)) }

// observeService makes one service out of the two that there may be.
func (s *State) observeService(k K0s) {
	c, w := k.Controller.State, k.Worker.State
	switch {
	case c == UnitUnknown || w == UnitUnknown:
		for _, u := range []struct {
			name string
			Service
		}{{"k0scontroller", k.Controller}, {"k0sworker", k.Worker}} {
			if u.State == UnitUnknown {
				s.why("the state of the service %s could not be told (%s)", u.name, cmp.Or(u.Detail, "no answer"))
			}
		}
	case c == UnitNone && w == UnitNone:
		s.Unit = UnitNone
	case c != UnitNone && w != UnitNone:
		s.why("both k0scontroller (%s) and k0sworker (%s) are installed", c, w)
	case c != UnitNone:
		s.Unit, s.InstalledFor = c, ControllerWorker
	default:
		s.Unit, s.InstalledFor = w, Worker
	}
	// What runs decides, if it is something else than what is installed: whoever
	// started it may do so again.
	runs := map[string]Role{"controller": ControllerWorker, "worker": Worker}[k.Role]
	if k.Answers == Yes && s.InstalledFor != "" && runs != s.InstalledFor {
		s.why("the service is installed for %s, but what runs says it is a %q", s.InstalledFor, k.Role)
		s.InstalledFor = ""
	}
}

func (s *State) observeCA(ca CA, cluster string) {
	switch {
	case ca.Found == No:
		s.CA = NoCluster
	case cluster == "":
		s.why("the CA of the cluster is not known, so what is on the host cannot be compared with it")
	case ca.Fingerprint != "" && ca.Fingerprint != cluster:
		s.CA = OtherCluster
		s.why("the CA in %s has the fingerprint %s, the cluster's is %s", ca.Source, ca.Fingerprint, cluster)
	case slices.ContainsFunc(ca.Others, func(other string) bool { return other != cluster }):
		s.CA = OtherCluster
		s.why("besides this cluster's CA there is one with the fingerprint %s", strings.Join(ca.Others, ", "))
	case ca.Found == Yes:
		s.CA = ThisCluster
	default:
		s.why("the cluster CA on the host could not be read: %s", cmp.Or(ca.Why, "no reason given"))
	}
}

func (s *State) observeNode(f Facts, cl ClusterView) {
	switch {
	case cl.NodeErr != nil:
		s.why("the node %s could not be looked up: %v", f.NodeName, cl.NodeErr)
	case cl.Node == nil:
		s.Node = NodeState{Registered: No, Ready: No, Cordoned: No, SameMachine: No}
	default:
		same, why := cl.Node.sameMachine(f)
		s.Node = NodeState{Registered: Yes, Ready: TriOf(cl.Node.Ready), Cordoned: TriOf(cl.Node.Cordoned), SameMachine: same}
		if same != Yes {
			s.why("node %s: %s", cl.Node.Name, why)
		}
	}
}

// sameMachine says whether n was made by the machine that f describes, and why
// not. A machine-id alone proves nothing, as a clone has it too; it has to come
// with the boot or with an address. A machine that was imaged anew has another
// machine-id but the address of before, and nothing that keeps its node Ready.
func (n Node) sameMachine(f Facts) (Tri, string) {
	if n.MachineID == "" || f.MachineID == "" {
		return Unknown, fmt.Sprintf("its machine-id is %q and the host's %q: which machine it is could not be told", n.MachineID, f.MachineID)
	}
	shared := f.shares(n.Addresses)
	if n.MachineID == f.MachineID {
		if shared || n.BootID != "" && n.BootID == f.BootID {
			return Yes, ""
		}
		return Unknown, fmt.Sprintf("it has the host's machine-id but none of its addresses, only %s: a clone, or the address was changed", strings.Join(n.Addresses, ", "))
	}
	if shared && !n.Ready {
		return Yes, ""
	}
	return No, fmt.Sprintf("it is of another machine (machine-id %s, addresses %s)", n.MachineID, strings.Join(n.Addresses, ", "))
}

// shares says whether one of the addresses is the host's own.
func (f Facts) shares(addresses []string) bool {
	return slices.ContainsFunc(addresses, func(text string) bool {
		a, err := netip.ParseAddr(text)
		return err == nil && f.HasAddress(a)
	})
}

// HasAddress says whether a is one of the host's own addresses.
func (f Facts) HasAddress(a netip.Addr) bool {
	a = a.Unmap()
	return slices.ContainsFunc(f.Addresses, func(own Address) bool { return own.Prefix.Addr().Unmap() == a })
}

// Any says whether anything is left that a clean host does not have. What k0s
// reset leaves on purpose, CNI configuration, does not count.
func (l Leftovers) Any() Tri {
	return anyOf(l.DataDir, l.EtcdCA, l.EtcdData, l.KubeletRoot, l.RunDir, l.Mounts)
}

// Found names what is left and counts, in words; empty means that nothing was
// found, or that it could not be looked for.
func (l Leftovers) Found() []string {
	if l.Any() != Yes {
		return nil
	}
	return slices.Clone(l.Paths)
}

// anyOf is Yes if one of them is, else Unknown if one of them is.
func anyOf(of ...Tri) Tri {
	switch {
	case slices.Contains(of, Yes):
		return Yes
	case slices.Contains(of, Unknown):
		return Unknown
	}
	return No
}
