package kubelet

import (
	"context"
	"fmt"
	"time"

	coordv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	leaseNamespace = "kube-node-lease"
	leaseSeconds   = 40
)

// beat keeps the node alive until the context ends. A Node that somebody deletes is not made
// again, as with the real kubelet: that takes a restart.
func (n *node) beat(ctx context.Context, ready func()) {
	lease, status := time.NewTicker(leaseEvery), time.NewTicker(statusEvery)
	defer lease.Stop()
	defer status.Stop()
	told := false
	for {
		if !told && n.status == corev1.ConditionTrue {
			told = true
			ready()
		}
		var err error
		select {
		case <-ctx.Done():
			return
		case <-lease.C:
			// A knob that was turned shows with the next renewal, not with the next status.
			if n.Knobs.NotReady != nil && n.Knobs.NotReady() == (n.status == corev1.ConditionTrue) {
				err = n.writeReady(ctx, nil)
			}
			if e := n.renewLease(ctx); e != nil {
				err = e
			}
		case <-status.C:
			err = n.writeReady(ctx, nil)
		}
		if err != nil && ctx.Err() == nil {
			n.log.Error("Unable to update node status", "error", err)
		}
	}
}

// renewLease renews the node's lease as it was last seen. Where that fails it is looked at again,
// and made if it is not there.
func (n *node) renewLease(ctx context.Context) error {
	leases := n.client.CoordinationV1().Leases(leaseNamespace)
	if n.lease != nil {
		n.fill(n.lease)
		if lease, err := leases.Update(ctx, n.lease, metav1.UpdateOptions{}); err == nil {
			n.lease = lease
			return nil
		}
		n.lease = nil
	}
	lease, err := leases.Get(ctx, n.NodeName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		lease = &coordv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Name: n.NodeName, Namespace: leaseNamespace,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.NodeName, UID: n.uid}},
		}}
		n.fill(lease)
		lease, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	case err == nil:
		n.fill(lease)
		lease, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("lease of the node: %w", err)
	}
	n.lease = lease
	return nil
}

func (n *node) fill(lease *coordv1.Lease) {
	now, seconds := metav1.NewMicroTime(time.Now()), int32(leaseSeconds)
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &n.NodeName, &seconds, &now
}
