package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mkesdk/mkesdk/mke"
)

type nodes struct{ w *World }

func (n nodes) List(context.Context) ([]mke.Node, error) {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	n.w.settle()
	var all []mke.Node
	for _, name := range slices.Sorted(maps.Keys(n.w.nodes)) {
		all = append(all, copyNode(n.w.nodes[name]))
	}
	return all, nil
}

func (n nodes) Get(_ context.Context, name string) (mke.Node, error) {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	n.w.settle()
	node, ok := n.w.nodes[name]
	if !ok {
		return mke.Node{}, fmt.Errorf("node %s: %w", name, mke.ErrNotFound)
	}
	return copyNode(node), nil
}

func (n nodes) Patch(_ context.Context, name string, p mke.NodePatch) error {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	node, ok := n.w.nodes[name]
	if !ok {
		return fmt.Errorf("node %s: %w", name, mke.ErrNotFound)
	}
	if p.UID != "" && p.UID != node.UID {
		return fmt.Errorf("node %s: %w", name, mke.ErrChanged)
	}
	node = copyNode(node)
	var what []string
	what = append(what, apply("label", node.Labels, p.Labels)...)
	what = append(what, apply("annotation", node.Annotations, p.Annotations)...)
	if p.Cordoned != nil && node.Cordoned != *p.Cordoned {
		node.Cordoned = *p.Cordoned
		what = append(what, fmt.Sprintf("cordoned=%t", node.Cordoned))
	}
	n.w.nodes[name] = node
	n.w.wrote("node %s: %s", name, strings.Join(what, ", "))
	return nil
}

// apply changes have as change says and returns what was changed, without values
// that depend on the time of day.
func apply(kind string, have map[string]string, change map[string]*string) (what []string) {
	for _, k := range slices.Sorted(maps.Keys(change)) {
		if v := change[k]; v == nil {
			delete(have, k)
			what = append(what, fmt.Sprintf("%s %s removed", kind, k))
		} else {
			have[k] = *v
			what = append(what, fmt.Sprintf("%s %s set", kind, k))
		}
	}
	return what
}

func copyNode(n mke.Node) mke.Node {
	n.Labels, n.Annotations = maps.Clone(n.Labels), maps.Clone(n.Annotations)
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	n.Addresses = slices.Clone(n.Addresses)
	return n
}

// settle brings the nodes up to the moment: a kubelet that has run long enough
// has registered, and then is Ready.
func (w *World) settle() {
	for _, h := range w.hosts {
		registered, ready := h.kubelet()
		if !registered {
			continue
		}
		n, ok := w.nodes[h.nodeName()]
		if !ok {
			w.uids++
			n = copyNode(mke.Node{Name: h.nodeName(), UID: fmt.Sprintf("uid-%d", w.uids)})
			maps.Copy(n.Labels, h.labels())
		}
		n.MachineID, n.Addresses, n.Kubelet = h.MachineID(), []string{h.Address}, "v1.36.3+k0s"
		n.Ready, n.ReadyReason = ready, ""
		if !ready {
			n.ReadyReason = "KubeletNotReady: container runtime network not ready"
		}
		w.nodes[n.Name] = n
	}
}
