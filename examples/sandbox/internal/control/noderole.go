package control

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// LabelRole is the label by which a k0s controller tells that its own node is one, and
// RoleControlPlane its value there.
const (
	LabelRole        = "node.k0sproject.io/role"
	RoleControlPlane = "control-plane"
	roleNamespace    = "node-role.kubernetes.io/"
)

// roleInterval is how often k0s's node-role component looks; the real one's is a minute.
const roleInterval = 3 * time.Second

// nodeRoles gives nodes the role label of the form kubectl shows, which kubelets may not set.
func nodeRoles(ctx context.Context, c kubernetes.Interface, log *slog.Logger) {
	for {
		if err := nodeRolesOnce(ctx, c); err != nil && ctx.Err() == nil {
			log.Error("failed to get node list", "component", "noderole", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(roleInterval):
		}
	}
}

func nodeRolesOnce(ctx context.Context, c kubernetes.Interface) error {
	nodes, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	for _, n := range nodes.Items {
		label := missingRole(n.Labels)
		if label == "" {
			continue
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{label: "true"}}})
		if err != nil {
			return err
		}
		if _, err := c.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// missingRole is the role label a node lacks, or nothing.
func missingRole(labels map[string]string) string {
	for l := range labels {
		if strings.HasPrefix(l, roleNamespace) {
			return ""
		}
	}
	if role := labels[LabelRole]; role != "" {
		return roleNamespace + role
	}
	return ""
}
