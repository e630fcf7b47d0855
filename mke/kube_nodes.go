package mke

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
)

// controlPlaneLabel is what k0s puts on the node of a controller.
const controlPlaneLabel = "node-role.kubernetes.io/control-plane"

// kubeNodes are [Nodes] over the Kubernetes API.
type kubeNodes struct{ client coreclient.NodeInterface }

func (k kubeNodes) List(ctx context.Context) ([]Node, error) {
	list, err := k.client.List(ctx, metav1.ListOptions{}) // no resourceVersion: past every cache
	if err != nil {
		return nil, fmt.Errorf("listing the nodes: %w", explain(err))
	}
	nodes := make([]Node, 0, len(list.Items))
	for i := range list.Items {
		nodes = append(nodes, nodeOf(&list.Items[i]))
	}
	return nodes, nil
}

func (k kubeNodes) Get(ctx context.Context, name string) (Node, error) {
	n, err := k.client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return Node{}, fmt.Errorf("node %s: %w", name, explain(err))
	}
	return nodeOf(n), nil
}

// Patch sends one merge patch. A merge patch needs no resourceVersion: labels and
// annotations that others write at the same time stay as they write them.
func (k kubeNodes) Patch(ctx context.Context, name string, p NodePatch) error {
	patch, err := p.json()
	if err != nil {
		return fmt.Errorf("node %s: %w", name, err)
	}
	_, err = k.client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	switch {
	case err == nil:
		return nil
	case p.UID != "" && (apierrors.IsConflict(err) || apierrors.IsInvalid(err)):
		// A uid that is not the node's is refused in one of these two ways, depending on the
		// version of Kubernetes; so are other things.
		n, getErr := k.client.Get(ctx, name, metav1.GetOptions{})
		if getErr == nil && string(n.UID) != p.UID {
			return &ChangedError{What: "node " + name, Was: "uid " + p.UID, Now: "uid " + string(n.UID)}
		}
	case p.UID != "" && gone(err):
		return &ChangedError{What: "node " + name, Was: "uid " + p.UID, Now: "gone"}
	}
	return fmt.Errorf("changing node %s: %w", name, explain(err))
}

// json is p as a merge patch. The uid in it makes the API server refuse the patch
// for another node of the same name.
func (p NodePatch) json() ([]byte, error) {
	metadata := map[string]any{}
	if p.UID != "" {
		metadata["uid"] = p.UID
	}
	if len(p.Labels) > 0 {
		metadata["labels"] = p.Labels
	}
	if len(p.Annotations) > 0 {
		metadata["annotations"] = p.Annotations
	}
	patch := map[string]any{"metadata": metadata}
	if p.Cordoned != nil {
		patch["spec"] = map[string]any{"unschedulable": *p.Cordoned}
	}
	return json.Marshal(patch)
}

// nodeOf reads what the operations need of a node.
func nodeOf(n *corev1.Node) Node {
	node := Node{
		Name:        n.Name,
		UID:         string(n.UID),
		MachineID:   n.Status.NodeInfo.MachineID,
		BootID:      n.Status.NodeInfo.BootID,
		Cordoned:    n.Spec.Unschedulable,
		Deleting:    n.DeletionTimestamp != nil,
		Kubelet:     n.Status.NodeInfo.KubeletVersion,
		Labels:      n.Labels,
		Annotations: n.Annotations,
	}
	_, node.Controller = n.Labels[controlPlaneLabel]
	for _, a := range n.Status.Addresses {
		node.Addresses = append(node.Addresses, a.Address)
	}
	node.Ready, node.ReadyReason = readiness(n)
	return node
}

// readiness reads the Ready condition. A node without one has never reported.
func readiness(n *corev1.Node) (ready bool, reason string) {
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		if c.Status == corev1.ConditionTrue {
			return true, ""
		}
		reason = c.Reason
		if c.Message != "" {
			reason += ": " + c.Message
		}
		if c.Status == corev1.ConditionUnknown {
			reason = "not known, " + reason
		}
		return false, reason
	}
	return false, "its kubelet has not reported yet"
}
