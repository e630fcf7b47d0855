// Package mke adds nodes to a running MKE 4 cluster.
//
// An operation is a [Sequence] of stages that run in the documented order, each
// over the hosts that it has something to do for. A stage with nothing to do is
// skipped and says why, which is what makes an operation safe to repeat: run
// over hosts that have all joined, only the readiness verification and the
// MkeConfig patch do anything, and neither changes the cluster.
//
// Progress is reported through [Options.OnEvent]. Failure is reported once, by
// the error: it says the stage and the host ([StageError]), and [Retryable] says
// whether making the same call again is a sound answer to it. The lock that an
// operation took is given back on every way out.
//
// Nothing is lost when an operation is cut short at any moment: the same call,
// made again, reaches the same end or is refused with the reason.
package mke

import (
	"context"

	"github.com/mkesdk/mkesdk/hosts"
)

// SupportedMKE is the version of MKE whose documented behaviour this package
// follows. An operation on a cluster of another version is refused, unless
// [Options.MKEVersion] says that version.
const SupportedMKE = "4.2.1"

// Operation is a kind of change to the cluster's nodes.
type Operation string

// The operations. More of them come as the package grows.
const (
	// Add joins hosts to the cluster.
	Add Operation = "node-add"
)

// AddNodes joins the hosts of opts that have its role to the cluster. Hosts of
// another role are left alone and reported as out of scope.
//
// The result is meaningful beside an error too: it then tells how far the
// operation came. The error joins all failures of all hosts; test it with
// [Retryable], errors.Is on this package's sentinels, and errors.AsType on
// [*StageError], [*HostError], [*LockedError] and [*ChangedError].
//
// Only hosts.Worker can be added by this version; another role is refused with
// [ErrInvalid] before anything is dialed.
func AddNodes(ctx context.Context, opts Options) (Result, error) {
	return operate(ctx, Add, opts)
}

// Result is what an operation found and did.
type Result struct {
	// Helper is the existing control plane host through which the cluster was
	// inspected. It is never a target.
	Helper HostRef `json:"helper"`
	// Hosts are the hosts in scope, in the order of Options.Hosts.
	Hosts []HostResult `json:"hosts"`
	// OutOfScope are the hosts of Options.Hosts that have another role.
	OutOfScope []HostRef `json:"outOfScope,omitempty"`
	// Left is what a failed or interrupted operation could not clean up, one
	// sentence each, with the command that does it. Empty after a success.
	Left []string `json:"left,omitempty"`
}

// HostRef names a host in both worlds: as it is reached over SSH and as the
// cluster calls its node.
type HostRef struct {
	Address string `json:"address"`
	// Node is the node name, or "" while it is not known.
	Node string `json:"node,omitempty"`
}

// String returns "address" or "address (node)".
func (h HostRef) String() string {
	if h.Node == "" || h.Node == h.Address {
		return h.Address
	}
	return h.Address + " (" + h.Node + ")"
}

// HostResult is what was found on one host in scope and what was done there.
type HostResult struct {
	Host HostRef `json:"host"`
	// Scenario is the row of the host scenario matrix (docs/scenarios.md) that
	// the host was in, such as "4a", and Name its name; both are empty if the
	// host was not looked at.
	Scenario string `json:"scenario,omitempty"`
	Name     string `json:"name,omitempty"`
	// Did says what was done, in order: "installed", "uncordoned", "labelled",
	// "registered in MkeConfig" and so on. Empty if nothing had to be done.
	Did []string `json:"did,omitempty"`
}

// Sequence returns the stages of an operation for a role, in the order in which
// they run, or nil if there is no such operation.
func Sequence(op Operation, role hosts.Role) []Stage {
	var stages []Stage
	for _, s := range sequence(op, role) {
		stages = append(stages, s.stage)
	}
	return stages
}
