package operator

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWorkloadsNameTheRegistry(t *testing.T) {
	for url, want := range map[string]string{
		"10.99.0.2:5000/mke":       "10.99.0.2:5000/mke/",
		"http://10.99.0.2:80/mke":  "10.99.0.2:80/mke/",
		"https://r.test/mke":       "r.test/mke/",
		"registry.mirantis.com/my": "registry.mirantis.com/my/",
	} {
		list, err := Params{ImageRegistry: url, Version: "4.2.1"}.workloads()
		if err != nil {
			t.Fatal(err)
		}
		if len(list) != len(everyWorkload) {
			t.Errorf("%d workloads, want %d", len(list), len(everyWorkload))
		}
		for _, w := range list {
			containers, _, _ := unstructured.NestedSlice(w.Object, "spec", "template", "spec", "containers")
			image, _ := containers[0].(map[string]any)["image"].(string)
			if !strings.HasPrefix(image, want) || !strings.HasSuffix(image, ":4.2.1") {
				t.Errorf("%s: image %s of %s", w.GetName(), image, url)
			}
		}
	}
}

func TestSetupRefuses(t *testing.T) {
	err := Setup(t.Context(), nil, Params{})
	if err == nil || !strings.Contains(err.Error(), "no host") || !strings.Contains(err.Error(), "no image registry") {
		t.Errorf("got %v, want everything that is wrong", err)
	}
}

// What a test or a person sets of a status stays; what is missing is added once.
func TestComplete(t *testing.T) {
	busy := map[string]any{"type": "Applying", "status": "True", "reason": "Test", "message": "set by hand", "lastTransitionTime": "2026-11-30T12:00:00Z"}
	obj := object("mke.mirantis.com/v1alpha1", "MkeConfig", Namespace, ConfigName, nil)
	obj.SetGeneration(7)
	obj.Object["status"] = map[string]any{"other": "kept", "conditions": []any{busy}}
	if !complete(obj, configConditions, time.Now()) {
		t.Error("nothing was added to a status that lacks most")
	}
	if !isTrue(obj, "Applying") || !isTrue(obj, "Ready") || isTrue(obj, "Upgrading") {
		t.Errorf("status %v", obj.Object["status"])
	}
	status := obj.Object["status"].(map[string]any)
	if status["observedGeneration"] != int64(7) || status["other"] != "kept" || len(status["conditions"].([]any)) != len(configConditions) {
		t.Errorf("status %v", status)
	}
	if complete(obj, configConditions, time.Now()) {
		t.Error("a complete status was completed again")
	}
}

func TestPickNode(t *testing.T) {
	node := func(name, ready string, control, cordoned bool) *unstructured.Unstructured {
		n := object("v1", "Node", "", name, map[string]any{"unschedulable": cordoned})
		if control {
			n.SetLabels(map[string]string{controlPlaneLabel: "true"})
		}
		n.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": ready}}}
		return n
	}
	worker, controller := node("w", "True", false, false), node("c", "True", true, false)
	for want, list := range map[string][]*unstructured.Unstructured{
		"":  {node("down", "False", true, false), node("unsure", "Unknown", true, false), node("cordoned", "True", true, true)},
		"w": {node("down", "False", true, false), worker},
		"c": {worker, controller, worker},
	} {
		if got := pickNode(list); got != want {
			t.Errorf("picked %q, want %q", got, want)
		}
	}
}

func TestCountControllers(t *testing.T) {
	for want, list := range map[int]any{
		0: nil,
		2: []any{map[string]any{"role": "controller+worker"}, map[string]any{"role": "worker"}, "nonsense", map[string]any{"role": "controller+worker"}},
	} {
		obj := object("mke.mirantis.com/v1alpha1", "MkeConfig", Namespace, ConfigName, map[string]any{"hosts": list})
		if got := countControllers(obj); got != want {
			t.Errorf("%v: %d, want %d", list, got, want)
		}
	}
}
