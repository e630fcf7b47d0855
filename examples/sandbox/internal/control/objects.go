package control

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// manifests are the objects k0s puts into each cluster as far as they matter here: who may join
// as a node, and the resources of its own.
//
//go:embed manifests.yaml
var manifests []byte

var (
	etcdMembers  = schema.GroupVersionResource{Group: "etcd.k0sproject.io", Version: "v1beta1", Resource: "etcdmembers"}
	controlNodes = schema.GroupVersionResource{Group: "autopilot.k0sproject.io", Version: "v1beta2", Resource: "controlnodes"}
)

// applyObjects creates the objects that are not there yet.
func applyObjects(ctx context.Context, c dynamic.Interface) error {
	dec := yaml.NewDecoder(bytes.NewReader(manifests))
	for {
		var doc map[string]any
		if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("the built-in manifests: %w", err)
		}
		obj := &unstructured.Unstructured{Object: normalise(doc).(map[string]any)}
		gvr, _ := meta.UnsafeGuessKindToResource(obj.GroupVersionKind())
		_, err := c.Resource(gvr).Create(ctx, obj, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
}

// normalise gives numbers the one type that unstructured objects may hold.
func normalise(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = normalise(e)
		}
	case []any:
		for i, e := range v {
			v[i] = normalise(e)
		}
	case int:
		return int64(v)
	}
	return v
}
