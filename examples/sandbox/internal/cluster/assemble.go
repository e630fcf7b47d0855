package cluster

import (
	"context"
	"errors"
	"io"
)

// Part is something that lives beside the cluster, in the supervisor: what plays MKE, the
// registry.
type Part struct {
	Name string
	// Start sets the part up and returns; what it goes on doing ends with ctx.
	Start func(ctx context.Context, p Params) error
}

// Params is what a part is told.
type Params struct {
	Dir        string    // state directory
	Kubeconfig []byte    // cluster administrator's, with an address that the operator's side reaches
	K0s        string    // the k0s binary of the sandbox, on this machine
	Plans      []Plan    // the sandbox's hosts
	Log        io.Writer // for what goes on after Start
}

func (s *supervisor) assemble(context.Context, []Part) error {
	return errors.New("not yet")
}
