package mke

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

var nodeKind = schema.GroupKind{Kind: "Node"}

func aNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "c1", UID: "u1", Labels: map[string]string{controlPlaneLabel: "true", "old": "x"}, Annotations: map[string]string{"kept": "yes"}},
		Spec:       corev1.NodeSpec{Unschedulable: true},
		Status: corev1.NodeStatus{
			NodeInfo:   corev1.NodeSystemInfo{MachineID: "m1", BootID: "b1", KubeletVersion: "v1.36.3+k0s"},
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}, {Type: corev1.NodeHostName, Address: "c1"}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// TestNodesRead reads nodes, past the caches of the API server.
func TestNodesRead(t *testing.T) {
	kube := fake.NewClientset(aNode())
	nodes := kubeNodes{kube.CoreV1().Nodes()}
	want := Node{
		Name: "c1", UID: "u1", MachineID: "m1", BootID: "b1", Addresses: []string{"10.0.0.1", "c1"}, Ready: true, Cordoned: true, Controller: true, Kubelet: "v1.36.3+k0s",
		Labels: map[string]string{controlPlaneLabel: "true", "old": "x"}, Annotations: map[string]string{"kept": "yes"},
	}
	list, err := nodes.List(t.Context())
	if err != nil || !reflect.DeepEqual(list, []Node{want}) {
		t.Errorf("list %+v, %v; want %+v", list, err, want)
	}
	got, err := nodes.Get(t.Context(), "c1")
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if _, err := nodes.Get(t.Context(), "c2"); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "c2") {
		t.Errorf("error %v, want ErrNotFound and the name", err)
	}
	for _, a := range kube.Actions() {
		if l, ok := a.(clienttesting.ListActionImpl); ok && l.ListOptions.ResourceVersion != "" {
			t.Errorf("listed from resourceVersion %q", l.ListOptions.ResourceVersion)
		}
	}
}

// TestNodeReady tells readiness, and why not.
func TestNodeReady(t *testing.T) {
	for _, tt := range []struct {
		conditions []corev1.NodeCondition
		ready      bool
		reason     string
	}{
		{[]corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}, true, ""},
		{[]corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", Message: "no CNI"}}, false, "KubeletNotReady: no CNI"},
		{[]corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown"}}, false, "not known, NodeStatusUnknown"},
		{[]corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue}}, false, "its kubelet has not reported yet"},
		{nil, false, "its kubelet has not reported yet"},
	} {
		n := aNode()
		n.Status.Conditions = tt.conditions
		if got := nodeOf(n); got.Ready != tt.ready || got.ReadyReason != tt.reason {
			t.Errorf("%v: ready %t, %q; want %t, %q", tt.conditions, got.Ready, got.ReadyReason, tt.ready, tt.reason)
		}
	}
}

func ptr[T any](v T) *T { return &v }

// TestNodePatch changes what it names and nothing else.
func TestNodePatch(t *testing.T) {
	kube := fake.NewClientset(aNode())
	err := kubeNodes{kube.CoreV1().Nodes()}.Patch(t.Context(), "c1", NodePatch{
		UID: "u1", Cordoned: ptr(false),
		Labels:      map[string]*string{"new": ptr("y"), "old": nil, "never there": nil},
		Annotations: map[string]*string{"a": ptr("")},
	})
	if err != nil {
		t.Fatal(err)
	}
	patch := kube.Actions()[0].(clienttesting.PatchAction).GetPatch()
	if want := `{"metadata":{"annotations":{"a":""},"labels":{"never there":null,"new":"y","old":null},"uid":"u1"},"spec":{"unschedulable":false}}`; string(patch) != want {
		t.Errorf("patch %s\nwant  %s", patch, want)
	}
	want := aNode()
	want.Spec.Unschedulable = false
	want.Labels = map[string]string{controlPlaneLabel: "true", "new": "y"}
	want.Annotations["a"] = ""
	got, err := kube.CoreV1().Nodes().Get(t.Context(), "c1", metav1.GetOptions{})
	if err != nil || !reflect.DeepEqual(got.ObjectMeta.Labels, want.Labels) || !reflect.DeepEqual(got.Annotations, want.Annotations) || got.Spec.Unschedulable {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestNodePatchOther refuses to patch a node that is not the one that was seen, in the
// two ways in which API servers say so, and does not take other refusals for that.
func TestNodePatchOther(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "c1", errors.New("uid mismatch"))
	invalid := apierrors.NewInvalid(nodeKind, "c1", nil)
	for _, tt := range []struct {
		name, node, uid string
		err             error
		changed         bool
	}{
		{"conflict", "c1", "u0", conflict, true},
		{"invalid", "c1", "u0", invalid, true},
		{"gone", "c2", "u0", nil, true},
		{"invalid for another reason", "c1", "u1", invalid, false},
		{"gone, whichever it was", "c2", "", nil, false},
		{"forbidden", "c1", "u1", apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "c1", nil), false},
	} {
		kube := fake.NewClientset(aNode())
		if tt.err != nil {
			kube.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tt.err })
		}
		err := kubeNodes{kube.CoreV1().Nodes()}.Patch(t.Context(), tt.node, NodePatch{UID: tt.uid, Cordoned: ptr(true)})
		if err == nil || errors.Is(err, ErrChanged) != tt.changed || !strings.Contains(err.Error(), tt.node) {
			t.Errorf("%s: error %v, want ErrChanged %t", tt.name, err, tt.changed)
		}
	}
}

// TestKubeLeases sends what the lock relies on: lists by label past every cache, and
// deletes only what was seen.
func TestKubeLeases(t *testing.T) {
	kube := fake.NewClientset()
	leases := kubeLeases{kube.CoordinationV1().Leases(Namespace)}
	mine := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "mke-operation", Labels: map[string]string{lockLabel: lockCluster}}}
	other := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	for _, l := range []*coordinationv1.Lease{mine, other} {
		if _, err := leases.Create(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := leases.List(t.Context()); err != nil || len(all) != 1 || all[0].Name != "mke-operation" || all[0].Namespace != "mke" {
		t.Errorf("listed %v, %v", all, err)
	}
	mine.Spec.HolderIdentity = ptr("token")
	if _, err := leases.Update(t.Context(), mine); err != nil {
		t.Error(err)
	}
	if l, err := leases.Get(t.Context(), "mke-operation"); err != nil || !holds(l, "token") {
		t.Errorf("got %v, %v", l, err)
	}
	if err := leases.Delete(t.Context(), "mke-operation", "u7", "9"); err != nil {
		t.Error(err)
	}
	for _, a := range kube.Actions() {
		switch a := a.(type) {
		case clienttesting.ListActionImpl:
			if o := a.ListOptions; o.ResourceVersion != "" || o.LabelSelector != "mke.mirantis.com/lock" {
				t.Errorf("list options %+v", o)
			}
		case clienttesting.DeleteActionImpl:
			if p := a.DeleteOptions.Preconditions; p == nil || *p.UID != "u7" || *p.ResourceVersion != "9" {
				t.Errorf("preconditions %+v", p)
			}
		}
	}
}
