package mke

import (
	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/transport"
)

// A target is a host in scope. Each field is written by the stage that its
// comment names and only read after it.
type target struct {
	spec      hosts.Spec
	conn      transport.Conn    // Reachability
	facts     hosts.Facts       // HostState
	node      *Node             // HostState, Verification; nil if there is none
	state     hosts.State       // HostState
	scenario  hosts.Scenario    // HostState
	labels    map[string]string // HostState, out of spec.InstallFlags
	stuck     bool              // HostState: it does not come up, and has no kubeconfig of its own
	owed      bool              // HostState, WorkerBootstrap: the node is to be un-cordoned
	joined    bool              // WorkerBootstrap, ServiceRestart, Verification: joined in this operation
	tokenGone bool              // WorkerBootstrap, ServiceRestart: its join token was taken away
	did       []string          // what was done, for the result
}

// ref names the target; its node only once it is known.
func (t *target) ref() HostRef {
	return HostRef{Address: t.spec.SSH.Address, Node: t.facts.NodeName}
}

func specsOf(on []*target) (specs []hosts.Spec) {
	for _, t := range on {
		specs = append(specs, t.spec)
	}
	return specs
}

func refs(on []*target) []HostRef {
	var names []HostRef
	for _, t := range on {
		names = append(names, t.ref())
	}
	return names
}
