package e2e

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/mkesdk/mkesdk/examples/sandbox/sandboxtest"
	"github.com/mkesdk/mkesdk/mke"
)

func isReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// node is the node of that name, nil if there is none.
func (b *bed) node(name string) *corev1.Node {
	b.t.Helper()
	n, err := b.kube.CoreV1().Nodes().Get(b.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// waitNode waits until the node is as it is to be.
func (b *bed) waitNode(name, what string, ok func(*corev1.Node) bool) {
	b.t.Helper()
	sandboxtest.Eventually(b.t, time.Minute, "node "+name+" "+what, func() bool { return ok(b.node(name)) })
}

// cordon does what kubectl cordon does, and kubectl uncordon.
func (b *bed) cordon(name string, on bool) {
	b.t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"unschedulable": on}})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.kube.CoreV1().Nodes().Patch(b.t.Context(), name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

// changeConfig changes the MkeConfig as an administrator does.
func (b *bed) changeConfig(change func(*unstructured.Unstructured)) {
	b.t.Helper()
	b.change(change, func(r dynamic.ResourceInterface, o *unstructured.Unstructured) error {
		_, err := r.Update(b.t.Context(), o, metav1.UpdateOptions{})
		return err
	})
}

// changeStatus changes the status of the MkeConfig as its operator does.
func (b *bed) changeStatus(change func(*unstructured.Unstructured)) {
	b.t.Helper()
	b.change(change, func(r dynamic.ResourceInterface, o *unstructured.Unstructured) error {
		_, err := r.UpdateStatus(b.t.Context(), o, metav1.UpdateOptions{})
		return err
	})
}

// change changes the MkeConfig, again if somebody else has changed it meanwhile.
func (b *bed) change(change func(*unstructured.Unstructured), write func(dynamic.ResourceInterface, *unstructured.Unstructured) error) {
	b.t.Helper()
	configs := b.dyn.Resource(mkeConfigs).Namespace(mke.Namespace)
	sandboxtest.Eventually(b.t, 10*time.Second, "the MkeConfig is written", func() bool {
		o, err := configs.Get(b.t.Context(), configName, metav1.GetOptions{})
		if err != nil {
			b.t.Fatal(err)
		}
		change(o)
		err = write(configs, o)
		if err != nil && !apierrors.IsConflict(err) {
			b.t.Fatal(err)
		}
		return err == nil
	})
}

// listed are the addresses in the MkeConfig.
func (b *bed) listed() (addresses []string) {
	b.t.Helper()
	o, err := b.dyn.Resource(mkeConfigs).Namespace(mke.Namespace).Get(b.t.Context(), configName, metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	list, _, err := unstructured.NestedSlice(o.Object, "spec", "hosts")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, entry := range list {
		address, _, err := unstructured.NestedString(entry.(map[string]any), "ssh", "address")
		if err != nil {
			b.t.Fatal(err)
		}
		addresses = append(addresses, address)
	}
	return addresses
}
