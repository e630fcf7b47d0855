package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"time"

	coordv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// node is a registered node and what this kubelet last said about it.
type node struct {
	Options
	client kubernetes.Interface
	log    *slog.Logger
	uid    types.UID
	status corev1.ConditionStatus // of Ready, as last written
	since  metav1.Time            // when that changed
	lease  *coordv1.Lease         // as last seen; nil if it has to be looked at
}

// uninitialized is the taint of a node whose cloud provider has not seen it yet.
var uninitialized = corev1.Taint{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: corev1.TaintEffectNoSchedule}

// desired is the Node as this kubelet wants it, without the condition.
func (n *node) desired() (*corev1.Node, error) {
	ip, err := nodeIP(n.NodeIP)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{
		"beta.kubernetes.io/arch": runtime.GOARCH, "beta.kubernetes.io/os": runtime.GOOS,
		"kubernetes.io/arch": runtime.GOARCH, "kubernetes.io/os": runtime.GOOS,
		"kubernetes.io/hostname": n.NodeName,
	}
	maps.Copy(labels, n.Labels)
	taints := slices.Clone(n.Taints)
	if n.ExternalCloud {
		taints = append(taints, uninitialized)
	}
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(memory(), resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(storage(n.RootDir), resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(110, resource.DecimalSI),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: n.NodeName, Labels: labels,
			Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
		},
		Spec: corev1.NodeSpec{Taints: taints},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: ip}, {Type: corev1.NodeHostName, Address: n.NodeName},
			},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: 10250}},
			NodeInfo:        systemInfo(n.Version),
		},
	}, nil
}

// register creates the Node, or takes over the one that is there: labels, addresses and what the
// machine is are written anew, everything else stays, an administrator's cordon above all.
func (n *node) register(ctx context.Context) error {
	want, err := n.desired()
	if err != nil {
		return err
	}
	nodes := n.client.CoreV1().Nodes()
	have, err := nodes.Create(ctx, want, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		if have, err = n.takeOver(ctx, want); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	n.uid = have.UID
	for _, c := range have.Status.Conditions {
		if c.Type == corev1.NodeReady {
			n.status, n.since = c.Status, c.LastTransitionTime
		}
	}
	return errors.Join(n.writeReady(ctx, &want.Status), n.renewLease(ctx))
}

func (n *node) takeOver(ctx context.Context, want *corev1.Node) (*corev1.Node, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": want.Labels, "annotations": want.Annotations}})
	if err != nil {
		return nil, err
	}
	return n.client.CoreV1().Nodes().Patch(ctx, n.NodeName, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
}

// writeReady writes the Ready condition without reading the Node, and with it the rest of a status
// if there is one. The other conditions are left to whoever wrote them.
func (n *node) writeReady(ctx context.Context, rest *corev1.NodeStatus) error {
	ready := corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status",
	}
	if n.Knobs.NotReady != nil && n.Knobs.NotReady() {
		ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, "KubeletNotReady", "a knob of the sandbox says so"
	}
	now := metav1.NewTime(time.Now())
	ready.LastHeartbeatTime, ready.LastTransitionTime = now, n.since
	if ready.Status != n.status || n.since.IsZero() {
		ready.LastTransitionTime = now
	}
	var status corev1.NodeStatus
	if rest != nil {
		status = *rest
	}
	status.Conditions = []corev1.NodeCondition{ready}
	patch, err := json.Marshal(map[string]any{"status": slim(status, rest != nil)})
	if err != nil {
		return err
	}
	_, err = n.client.CoreV1().Nodes().Patch(ctx, n.NodeName, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("status of the node: %w", err)
	}
	n.status, n.since = ready.Status, ready.LastTransitionTime
	return nil
}

// slim is a status as a patch: the conditions alone, unless all of it is meant.
func slim(s corev1.NodeStatus, whole bool) any {
	if whole {
		return s
	}
	return map[string]any{"conditions": s.Conditions}
}
