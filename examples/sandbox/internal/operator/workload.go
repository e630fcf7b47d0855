package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// followsControllers is the label of a workload with as many replicas as there are controllers.
const followsControllers = "sandbox.mkesdk/follows-controllers"

// controlPlaneLabel is that of the nodes on which MKE's own pods are put before others.
const controlPlaneLabel = "node-role.kubernetes.io/control-plane"

// countControllers counts the controllers that a MkeConfig lists.
func countControllers(config *unstructured.Unstructured) int {
	list, _, _ := unstructured.NestedSlice(config.Object, "spec", "hosts")
	n := 0
	for _, h := range list {
		if h, ok := h.(map[string]any); ok && h["role"] == "controller+worker" {
			n++
		}
	}
	return n
}

// scale gives the workloads that follow the number of controllers as many replicas.
func (r *reconciler) scale(ctx context.Context, controllers int) error {
	var errs []error
	for _, gvr := range []schema.GroupVersionResource{deployments, statefulSets} {
		for _, obj := range r.objects(gvr) {
			replicas, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
			if obj.GetLabels()[followsControllers] != "true" || replicas == int64(controllers) {
				continue
			}
			patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, controllers)
			_, err := r.Resource(gvr).Namespace(obj.GetNamespace()).Patch(ctx, obj.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: UserAgent})
			if err != nil {
				errs = append(errs, fmt.Errorf("scale %s: %w", obj.GetName(), err))
			}
		}
	}
	return errors.Join(errs...)
}

// runPods does for the pods of MKE what a scheduler and a kubelet do, as far as the API shows
// it: they are bound, become Ready, and go when they are deleted.
func (r *reconciler) runPods(ctx context.Context) error {
	all := r.objects(nodes)
	ready := map[string]bool{}
	for _, n := range all {
		ready[n.GetName()] = isTrue(n, "Ready")
	}
	var errs []error
	for _, p := range r.objects(pods) {
		node, _, _ := unstructured.NestedString(p.Object, "spec", "nodeName")
		var err error
		switch {
		case node == "":
			if to := pickNode(all); to != "" && p.GetDeletionTimestamp() == nil {
				err = r.bind(ctx, p, to)
			}
		case !ready[node]: // nobody is there to do anything
		case p.GetDeletionTimestamp() != nil:
			now := int64(0)
			err = r.Resource(pods).Namespace(p.GetNamespace()).Delete(ctx, p.GetName(), metav1.DeleteOptions{GracePeriodSeconds: &now})
		case !isTrue(p, "Ready"):
			err = r.markRunning(ctx, p)
		}
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("pod %s: %w", p.GetName(), err))
		}
	}
	return errors.Join(errs...)
}

// pickNode chooses a Ready node that is not cordoned, a control plane node before others. Its
// taints do not matter: what MKE runs itself tolerates those of controllers.
func pickNode(all []*unstructured.Unstructured) string {
	best, control := "", false
	for _, n := range all {
		cordoned, _, _ := unstructured.NestedBool(n.Object, "spec", "unschedulable")
		_, c := n.GetLabels()[controlPlaneLabel]
		if isTrue(n, "Ready") && !cordoned && (best == "" || c && !control) {
			best, control = n.GetName(), c
		}
	}
	return best
}

func (r *reconciler) bind(ctx context.Context, pod *unstructured.Unstructured, node string) error {
	b := object("v1", "Binding", pod.GetNamespace(), pod.GetName(), nil)
	b.Object["target"] = map[string]any{"apiVersion": "v1", "kind": "Node", "name": node}
	_, err := r.Resource(pods).Namespace(pod.GetNamespace()).Create(ctx, b, metav1.CreateOptions{FieldManager: UserAgent}, "binding")
	return err
}

// markRunning says of a pod what its kubelet would.
func (r *reconciler) markRunning(ctx context.Context, pod *unstructured.Unstructured) error {
	now := time.Now().UTC().Format(time.RFC3339)
	var conditions, containers []any
	for _, kind := range []string{"PodScheduled", "Initialized", "ContainersReady", "Ready"} {
		conditions = append(conditions, map[string]any{"type": kind, "status": "True", "lastTransitionTime": now})
	}
	list, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	for _, c := range list {
		c, _ := c.(map[string]any)
		containers = append(containers, map[string]any{
			"name": c["name"], "image": c["image"], "imageID": "", "ready": true, "started": true, "restartCount": int64(0),
			"state": map[string]any{"running": map[string]any{"startedAt": now}},
		})
	}
	status, _ := pod.Object["status"].(map[string]any)
	if status == nil {
		status = map[string]any{}
		pod.Object["status"] = status
	}
	status["phase"], status["conditions"], status["containerStatuses"] = "Running", conditions, containers
	if _, ok := status["startTime"]; !ok {
		status["startTime"] = now
	}
	_, err := r.Resource(pods).Namespace(pod.GetNamespace()).UpdateStatus(ctx, pod, metav1.UpdateOptions{FieldManager: UserAgent})
	return err
}
