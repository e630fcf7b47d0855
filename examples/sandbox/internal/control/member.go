package control

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Labels that k0s puts on an EtcdMember.
const (
	labelLease           = "k0s.k0sproject.io/controller-lease"
	labelShutdown        = "k0s.k0sproject.io/shutdown"
	labelShutdownOnLeave = "k0s.k0sproject.io/shutdown-on-leave"
)

func leaseName(node string) string { return "k0s-ctrl-" + node }

// announceMember writes this controller's own EtcdMember, as each k0s does when its etcd votes: an
// earlier wish to leave is taken back, the invocation is noted, and the member counts as joined.
// What else the status says is left as it is.
func announceMember(ctx context.Context, c dynamic.Interface, node, invocation, peerAddress string, m member) error {
	api := c.Resource(etcdMembers)
	labels := map[string]string{labelLease: leaseName(node), labelShutdownOnLeave: invocation}
	obj, err := api.Get(ctx, node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		obj = &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": etcdMembers.GroupVersion().String(), "kind": "EtcdMember", "spec": map[string]any{},
		}}
		obj.SetName(node)
		obj.SetLabels(labels)
		obj, err = api.Create(ctx, obj, metav1.CreateOptions{})
	case err == nil:
		have := obj.GetLabels()
		delete(have, labelShutdown)
		for k, v := range have {
			if _, ours := labels[k]; !ours {
				labels[k] = v
			}
		}
		obj.SetLabels(labels)
		unstructured.RemoveNestedField(obj.Object, "spec", "leave")
		obj, err = api.Update(ctx, obj, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("EtcdMember %s: %w", node, err)
	}
	setJoined(obj, m, peerAddress, time.Now())
	if _, err := api.UpdateStatus(ctx, obj, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("status of EtcdMember %s: %w", node, err)
	}
	return nil
}

// setJoined writes the status of a member that votes. The time of the last transition stays if
// the condition held before.
func setJoined(obj *unstructured.Unstructured, m member, peerAddress string, now time.Time) {
	status, _, _ := unstructured.NestedMap(obj.Object, "status")
	if status == nil {
		status = map[string]any{}
	}
	since := now.UTC().Format(time.RFC3339)
	conditions, _, _ := unstructured.NestedSlice(status, "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Joined" && c["status"] == "True" {
			since, _ = c["lastTransitionTime"].(string)
		}
	}
	status["conditions"] = []any{map[string]any{
		"type": "Joined", "status": "True", "message": "Member joined", "lastTransitionTime": since,
	}}
	status["memberID"] = strconv.FormatUint(m.id, 16)
	status["peerAddress"] = peerAddress
	obj.Object["status"] = status
}

// announceControlNode writes the ControlNode that k0s's autopilot keeps for each controller.
func announceControlNode(ctx context.Context, c dynamic.Interface, node, address, version string) error {
	api := c.Resource(controlNodes)
	obj, err := api.Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		obj = &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": controlNodes.GroupVersion().String(), "kind": "ControlNode",
		}}
		obj.SetName(node)
		obj.SetAnnotations(map[string]string{"autopilot.k0sproject.io/mode": "controller"})
		obj.SetLabels(map[string]string{
			"kubernetes.io/arch": runtime.GOARCH, "kubernetes.io/hostname": node, "kubernetes.io/os": runtime.GOOS,
		})
		obj, err = api.Create(ctx, obj, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("ControlNode %s: %w", node, err)
	}
	obj.Object["status"] = map[string]any{
		"addresses": []any{
			map[string]any{"type": "InternalIP", "address": address},
			map[string]any{"type": "Hostname", "address": node},
		},
		"k0sVersion": version,
	}
	if _, err := api.UpdateStatus(ctx, obj, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("status of ControlNode %s: %w", node, err)
	}
	return nil
}

// holdLease keeps the lease by which k0s counts a controller as active, until the context ends;
// then it is given back. A lease that an earlier invocation still holds must run out first.
func holdLease(ctx context.Context, c kubernetes.Interface, node, invocation string, log *slog.Logger) {
	log = log.With("component", "controllerlease")
	for ctx.Err() == nil {
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: "kube-node-lease", Name: leaseName(node)},
				Client:     c.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: invocation},
			},
			LeaseDuration: 60 * time.Second, RenewDeadline: 15 * time.Second, RetryPeriod: 5 * time.Second,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { log.Info("Holding the controller lease") },
				OnStoppedLeading: func() { log.Info("Lost the controller lease") },
			},
		})
		if err != nil {
			log.Error("Cannot elect", "error", err)
			return
		}
		elector.Run(ctx)
	}
}

// localAddress is the address of the two that is an IP, the API's first.
func localAddress(s Spec) string {
	if net.ParseIP(s.API.Address) != nil {
		return s.API.Address
	}
	return s.Storage.Etcd.PeerAddress
}
