package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/mkesdk/mkesdk/hosts"
)

func params() Params {
	return Params{
		Hosts:         []hosts.Spec{{Role: hosts.ControllerWorker, SSH: hosts.SSH{Address: "10.99.0.11", User: "root", Port: 22, KeyPath: "/state/id_ed25519"}}},
		ImageRegistry: "10.99.0.2:5000/mke", CAData: "-----BEGIN CERTIFICATE-----\n", DataDir: "/var/lib/k0s",
	}
}

// The whole stand-in on a real API server. The parts build on each other, because a server
// costs seconds.
func TestOnRealAPIServer(t *testing.T) {
	cfg := startCluster(t)
	c, err := connect(cfg)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := Setup(t.Context(), cfg, params()); err != nil {
		t.Fatal(err)
	}
	t.Logf("set up in %v", time.Since(start).Round(time.Millisecond))

	t.Run("Seeds", func(t *testing.T) { testSeeds(t, c) })
	t.Run("SetupTwice", func(t *testing.T) { testSetupTwice(t, c, cfg) })
	t.Run("Schema", func(t *testing.T) { testSchema(t, c) })

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, cfg, RunOptions{Webhook: l}) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	makeNode(t, c, "c1")
	t.Run("WorkloadsRun", func(t *testing.T) { testAvailable(t, c, 1) })
	t.Run("WorkloadsRollOut", func(t *testing.T) { testRollout(t, c) })
	t.Run("FollowsControllers", func(t *testing.T) { testFollows(t, c) })
	t.Run("Webhook", func(t *testing.T) { testWebhook(t, c) })
	t.Run("IdleWritesNothing", func(t *testing.T) { testIdle(t, cfg) })
}

func get(t *testing.T, c client, gvr schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	obj, err := c.Resource(gvr).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

func patch(t *testing.T, c client, gvr schema.GroupVersionResource, name string, change any, sub ...string) error {
	t.Helper()
	data, err := json.Marshal(change)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Resource(gvr).Namespace(Namespace).Patch(t.Context(), name, types.MergePatchType, data, metav1.PatchOptions{FieldValidation: "Strict"}, sub...)
	return err
}

func testSeeds(t *testing.T, c client) {
	config := get(t, c, configs, Namespace, ConfigName)
	for path, want := range map[string]any{
		"spec.version":                       "4.2.1",
		"spec.registries.imageRegistry.url":  "10.99.0.2:5000/mke",
		"spec.k8sProviderSpecs.dataDir":      "/var/lib/k0s",
		"spec.cloudProvider.enabled":         false,
		"spec.kubelet.maxPods":               int64(110), // a section without a schema
		"status.observedGeneration":          int64(1),
		"spec.registries.chartRegistry.url":  "oci://10.99.0.2:5000/mke",
		"spec.registries.imageRegistry.none": nil,
	} {
		got, _, err := unstructured.NestedFieldNoCopy(config.Object, strings.Split(path, ".")...)
		if err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", path, got, err, want)
		}
	}
	list, _, _ := unstructured.NestedSlice(config.Object, "spec", "hosts")
	data, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	if want := `[{"role":"controller+worker","ssh":{"address":"10.99.0.11","keyPath":"/state/id_ed25519","port":22,"user":"root"}}]`; string(data) != want {
		t.Errorf("spec.hosts: %s, want %s", data, want)
	}
	for _, obj := range []*unstructured.Unstructured{config, get(t, c, releases, Namespace, "4.2.1")} {
		if !isTrue(obj, "Ready") || isTrue(obj, "Upgrading") {
			t.Errorf("%s: status %v", obj.GetKind(), obj.Object["status"])
		}
	}
}

func testSetupTwice(t *testing.T, c client, cfg *rest.Config) {
	was := get(t, c, configs, Namespace, ConfigName).GetResourceVersion()
	changed := params()
	changed.ImageRegistry = "elsewhere.test/mke"
	if err := Setup(t.Context(), cfg, changed); err != nil {
		t.Fatal(err)
	}
	if now := get(t, c, configs, Namespace, ConfigName).GetResourceVersion(); now != was {
		t.Errorf("the MkeConfig was written again: %s, then %s", was, now)
	}
}

// What the schema refuses, and what it keeps although it does not know it.
func testSchema(t *testing.T, c client) {
	host := func(change map[string]any) map[string]any {
		h := map[string]any{"role": "worker", "ssh": map[string]any{"address": "10.99.0.21"}}
		for k, v := range change {
			h[k] = v
		}
		return map[string]any{"spec": map[string]any{"hosts": []any{h}}}
	}
	for name, tc := range map[string]struct {
		change any
		want   string
	}{
		"role":               {host(map[string]any{"role": "controller"}), "controller+worker"},
		"no ssh":             {host(map[string]any{"ssh": nil}), "spec.hosts[0].ssh"},
		"two addresses":      {host(map[string]any{"privateAddress": "10.0.0.1", "privateInterface": "eth0"}), "only one of"},
		"port":               {host(map[string]any{"ssh": map[string]any{"address": "a", "port": 70000}}), "65535"},
		"unknown host field": {host(map[string]any{"adress": "10.0.0.1"}), `unknown field "spec.hosts[0].adress"`},
		"no version":         {map[string]any{"spec": map[string]any{"version": nil}}, "spec.version"},
		"data directory":     {map[string]any{"spec": map[string]any{"k8sProviderSpecs": map[string]any{"dataDir": "var"}}}, "dataDir"},
	} {
		if err := patch(t, c, configs, ConfigName, tc.change); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want a refusal that names %q", name, err, tc.want)
		}
	}
	chain := map[string]any{"address": "a", "bastion": map[string]any{"address": "b", "bastion": map[string]any{"address": "c", "user": "u"}}}
	if err := patch(t, c, configs, ConfigName, map[string]any{"spec": map[string]any{"hosts": []any{map[string]any{"role": "worker", "ssh": chain}}}}); err != nil {
		t.Errorf("two bastions in a row: %v", err)
	}
	list, _, _ := unstructured.NestedSlice(get(t, c, configs, Namespace, ConfigName).Object, "spec", "hosts")
	if got := list[0].(map[string]any)["ssh"]; !reflect.DeepEqual(got, chain) {
		t.Errorf("two bastions in a row became %v", got)
	}
	if err := patch(t, c, configs, ConfigName, map[string]any{"spec": map[string]any{"dns": map[string]any{"lameduck": map[string]any{}}}}); err != nil {
		t.Errorf("a section without a schema: %v", err)
	}
	if _, ok, _ := unstructured.NestedMap(get(t, c, configs, Namespace, ConfigName).Object, "spec", "dns", "lameduck"); !ok {
		t.Error("a section without a schema was dropped")
	}
}

// makeNode makes a Ready node, as a kubelet would.
func makeNode(t *testing.T, c client, name string) {
	t.Helper()
	n := object("v1", "Node", "", name, nil)
	n.SetLabels(map[string]string{controlPlaneLabel: "true"})
	n, err := c.Resource(nodes).Create(t.Context(), n, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	if _, err := c.Resource(nodes).UpdateStatus(t.Context(), n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

var everyWorkload = []struct {
	gvr             schema.GroupVersionResource
	namespace, name string
	follows         bool
}{
	{deployments, Namespace, "mke-operator", false},
	{deployments, Namespace, "dex", true},
	{statefulSets, Namespace, "alertmanager", true},
	{deployments, K0rdentNamespace, "kcm-controller-manager", false},
}

// testAvailable waits until every workload is scaled and rolled out.
func testAvailable(t *testing.T, c client, controllers int64) {
	for _, w := range everyWorkload {
		want := int64(1)
		if w.follows {
			want = controllers
		}
		eventually(t, 30*time.Second, w.name+" is available", func(ctx context.Context) error {
			obj, err := c.Resource(w.gvr).Namespace(w.namespace).Get(ctx, w.name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			status, _ := obj.Object["status"].(map[string]any)
			for _, field := range []string{"replicas", "updatedReplicas", "availableReplicas"} {
				if status[field] != want {
					return fmt.Errorf("%s is %v, want %d", field, status[field], want)
				}
			}
			if status["observedGeneration"] != obj.GetGeneration() {
				return errors.New("the generation is not observed")
			}
			return nil
		})
	}
}

// testRollout restarts every workload as kubectl rollout restart does, and waits for it.
func testRollout(t *testing.T, c client) {
	restart := []byte(`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-11-30T12:00:00Z"}}}}}`)
	for _, w := range everyWorkload {
		if _, err := c.Resource(w.gvr).Namespace(w.namespace).Patch(t.Context(), w.name, types.MergePatchType, restart, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	testAvailable(t, c, 1)
}

func testFollows(t *testing.T, c client) {
	list := []any{}
	for i := range 3 {
		list = append(list, map[string]any{"role": "controller+worker", "ssh": map[string]any{"address": fmt.Sprintf("10.99.0.1%d", i+1)}})
	}
	list = append(list, map[string]any{"role": "worker", "ssh": map[string]any{"address": "10.99.0.21"}})
	if err := patch(t, c, configs, ConfigName, map[string]any{"spec": map[string]any{"hosts": list}}); err != nil {
		t.Fatal(err)
	}
	testAvailable(t, c, 3)
	eventually(t, 10*time.Second, "the generation of the MkeConfig is observed", func(context.Context) error {
		obj := get(t, c, configs, Namespace, ConfigName)
		if seen, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration"); seen != obj.GetGeneration() {
			return fmt.Errorf("it is %d, %d is observed", obj.GetGeneration(), seen)
		}
		return nil
	})
}
