package operator

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

//go:embed crds.yaml
var crdsYAML []byte

//go:embed workloads.yaml
var workloadsYAML []byte

// retryEvery is how soon something that may come right is tried again.
const retryEvery = 50 * time.Millisecond

// definitions are the custom resource definitions of MKE.
func definitions() ([]*unstructured.Unstructured, error) { return decode(crdsYAML) }

// workloads are MKE's own, with the images of its registry.
func (p Params) workloads() ([]*unstructured.Unstructured, error) {
	images := strings.TrimPrefix(strings.TrimPrefix(p.ImageRegistry, "https://"), "http://")
	text := strings.NewReplacer("IMAGES", images, "VERSION", p.Version).Replace(string(workloadsYAML))
	return decode([]byte(text))
}

func namespace(name string) *unstructured.Unstructured {
	return object("v1", "Namespace", "", name, nil)
}

func (p Params) release() *unstructured.Unstructured {
	return object("mke.mirantis.com/v1alpha1", "MkeRelease", Namespace, p.Version, map[string]any{"version": p.Version})
}

// config is the MkeConfig of a small cluster. Sections that the SDK does not know are in it as
// they are in real ones, because it has to leave them alone.
func (p Params) config() (*unstructured.Unstructured, error) {
	list, err := toJSON(p.Hosts)
	if err != nil {
		return nil, fmt.Errorf("mke operator: hosts: %w", err)
	}
	image := map[string]any{"url": p.ImageRegistry}
	if p.CAData != "" {
		image["caData"] = p.CAData
	}
	spec := map[string]any{
		"version":       p.Version,
		"hosts":         list,
		"registries":    map[string]any{"imageRegistry": image, "chartRegistry": map[string]any{"url": "oci://" + p.ImageRegistry}},
		"apiServer":     map[string]any{"audit": map[string]any{"enabled": false}, "eventRateLimit": map[string]any{"enabled": false}, "requestTimeout": "1m0s"},
		"backup":        map[string]any{"enabled": false},
		"cloudProvider": map[string]any{"enabled": false},
		"kubelet":       map[string]any{"maxPods": int64(110), "workerKubeReserved": map[string]any{"cpu": "50m", "memory": "300Mi"}},
		"network":       map[string]any{"nodePortRange": "32768-35535", "serviceCIDR": "10.96.0.0/16"},
		"tracking":      map[string]any{"enabled": false},
	}
	if p.DataDir != "" {
		spec["k8sProviderSpecs"] = map[string]any{"dataDir": p.DataDir}
	}
	return object("mke.mirantis.com/v1alpha1", "MkeConfig", Namespace, ConfigName, spec), nil
}

func object(apiVersion, kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	if spec != nil {
		o.Object["spec"] = spec
	}
	return o
}

// decode reads a document of items.
func decode(data []byte) ([]*unstructured.Unstructured, error) {
	var doc struct{ Items []map[string]any }
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("mke operator: the built-in manifests: %w", err)
	}
	objs := make([]*unstructured.Unstructured, 0, len(doc.Items))
	for _, item := range doc.Items {
		item, err := toJSON(item)
		if err != nil {
			return nil, fmt.Errorf("mke operator: the built-in manifests: %w", err)
		}
		objs = append(objs, &unstructured.Unstructured{Object: item.(map[string]any)})
	}
	return objs, nil
}

// toJSON gives a value the types that unstructured objects are made of.
func toJSON(v any) (any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	list := &unstructured.Unstructured{}
	if err := list.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"Any","value":` + string(data) + `}`)); err != nil {
		return nil, err
	}
	return list.Object["value"], nil
}

// create creates an object that is not there yet. A cluster that is just starting says no in
// many ways that mean "not yet"; they are tried again until the context ends.
func (c client) create(ctx context.Context, obj *unstructured.Unstructured) error {
	gvr, _ := meta.UnsafeGuessKindToResource(obj.GroupVersionKind())
	err := c.patiently(ctx, func(ctx context.Context) error {
		_, err := c.Resource(gvr).Namespace(obj.GetNamespace()).Create(ctx, obj, metav1.CreateOptions{FieldManager: UserAgent, FieldValidation: "Strict"})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("mke operator: create %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	return nil
}

// patiently tries again what may come right by itself.
func (c client) patiently(ctx context.Context, try func(context.Context) error) error {
	for {
		err := try(ctx)
		if err == nil || final(err) {
			return err
		}
		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
			return fmt.Errorf("%w: last: %w", context.Cause(ctx), err)
		}
	}
}

// final tells an answer that will not change from one that may.
func final(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}
