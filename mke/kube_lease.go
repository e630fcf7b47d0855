package mke

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// Namespace is where MKE's own objects are: the MkeConfig, the operation locks.
const Namespace = "mke"

// kubeLeases are [Leases] over the Kubernetes API. Every read is a quorum read: no
// resourceVersion is given, so that the API server answers from etcd and not from
// its cache.
type kubeLeases struct {
	client coordinationclient.LeaseInterface
}

func (k kubeLeases) Get(ctx context.Context, name string) (*coordinationv1.Lease, error) {
	return k.client.Get(ctx, name, metav1.GetOptions{})
}

func (k kubeLeases) List(ctx context.Context) ([]coordinationv1.Lease, error) {
	list, err := k.client.List(ctx, metav1.ListOptions{LabelSelector: lockLabel})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (k kubeLeases) Create(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return k.client.Create(ctx, l, metav1.CreateOptions{})
}

func (k kubeLeases) Update(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return k.client.Update(ctx, l, metav1.UpdateOptions{})
}

func (k kubeLeases) Delete(ctx context.Context, name, uid, resourceVersion string) error {
	id := types.UID(uid)
	return k.client.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &id, ResourceVersion: &resourceVersion}})
}
