package operator

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A condition that an object has from the beginning. What a test sets of it stays set.
type condition struct{ kind, status, reason, message string }

// Conditions. The last three are True while that is in progress.
var (
	configConditions = []condition{
		{"Ready", "True", "Reconciled", "the cluster is as this configuration says"},
		{"Applying", "False", "NotApplying", ""},
		{"Upgrading", "False", "NotUpgrading", ""},
		{"Resetting", "False", "NotResetting", ""},
	}
	releaseConditions = []condition{
		{"Ready", "True", "AllComponentsReady", "every component of the release is ready"},
		{"Upgrading", "False", "NotUpgrading", ""},
	}
)

// settle completes the status of an object: its generation as observed, and the conditions it
// lacks. It writes only if something is to be written.
func (c client) settle(ctx context.Context, gvr schema.GroupVersionResource, name string, want []condition) error {
	err := c.patiently(ctx, func(ctx context.Context) error { return c.settleOnce(ctx, gvr, name, want) })
	if err != nil {
		return fmt.Errorf("mke operator: status of %s %s: %w", gvr.Resource, name, err)
	}
	return nil
}

// settleOnce is settle in one try.
func (c client) settleOnce(ctx context.Context, gvr schema.GroupVersionResource, name string, want []condition) error {
	obj, err := c.Resource(gvr).Namespace(Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !complete(obj, want, time.Now()) {
		return nil
	}
	_, err = c.Resource(gvr).Namespace(Namespace).UpdateStatus(ctx, obj, metav1.UpdateOptions{FieldManager: UserAgent})
	return err
}

// complete does to an object what settle is to do, and tells whether that changed it.
func complete(obj *unstructured.Unstructured, want []condition, now time.Time) (changed bool) {
	generation := obj.GetGeneration()
	status, _ := obj.Object["status"].(map[string]any)
	if status == nil {
		status = map[string]any{}
		obj.Object["status"] = status
	}
	if seen, _ := status["observedGeneration"].(int64); seen != generation {
		status["observedGeneration"] = generation
		changed = true
	}
	have, _ := status["conditions"].([]any)
	for _, w := range want {
		if findCondition(have, w.kind) != nil {
			continue
		}
		have = append(have, map[string]any{
			"type": w.kind, "status": w.status, "reason": w.reason, "message": w.message,
			"observedGeneration": generation, "lastTransitionTime": now.UTC().Format(time.RFC3339),
		})
		changed = true
	}
	status["conditions"] = have
	return changed
}

// findCondition returns the condition of a type, or nil.
func findCondition(conditions []any, kind string) map[string]any {
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == kind {
			return c
		}
	}
	return nil
}

// isTrue tells whether an object has a condition that is True.
func isTrue(obj *unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	return findCondition(conditions, kind)["status"] == "True"
}
