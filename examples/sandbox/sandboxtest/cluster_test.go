package sandboxtest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/mkesdk/mkesdk/examples/sandbox/sandboxtest"
)

// get asks the cluster's API for an object.
func get(t *testing.T, c *sandboxtest.Cluster, path string, into any) {
	t.Helper()
	cfg := c.RESTConfig()
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Fatalf("%s: %s", path, resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}

// A cluster as it comes: its controller is a Ready Node, MKE is there, the registry holds k0s, and
// on its hosts nothing goes on.
func TestCluster(t *testing.T) {
	began := time.Now()
	c := sandboxtest.New(t, sandboxtest.Config{Spare: 1})
	t.Logf("with whatever had to be built it took %v", time.Since(began).Round(time.Millisecond))
	var nodes struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct {
				NodeInfo   struct{ MachineID string }
				Conditions []struct{ Type, Status string }
			}
		}
	}
	get(t, c, "/api/v1/nodes", &nodes)
	if len(nodes.Items) != 1 || nodes.Items[0].Metadata.Name != "c1" {
		t.Fatalf("the nodes are %+v", nodes.Items)
	}
	if id := c.Host("c1").Exec("cat", "/etc/machine-id"); nodes.Items[0].Status.NodeInfo.MachineID != id {
		t.Errorf("the node is %s, the host %s", nodes.Items[0].Status.NodeInfo.MachineID, id)
	}
	var config struct {
		Spec struct {
			Hosts []struct {
				SSH struct{ Address, KeyPath string }
			}
			Registries struct{ ImageRegistry struct{ URL, CAData string } }
		}
	}
	get(t, c, "/apis/mke.mirantis.com/v1alpha1/namespaces/mke/mkeconfigs/mke", &config)
	if h := config.Spec.Hosts; len(h) != 1 || h[0].SSH.Address != "10.99.0.11" || h[0].SSH.KeyPath != c.Key() {
		t.Errorf("MkeConfig lists %+v", h)
	}
	h1 := c.Host("h1")
	if _, err := h1.Run("test", "-e", "/usr/local/bin/k0s"); err == nil {
		t.Error("a spare host has k0s already")
	}
	before := h1.Snapshot()
	if err := reaches(h1, strings.TrimSuffix(config.Spec.Registries.ImageRegistry.URL, "/mke")); err != nil {
		t.Errorf("h1 to the registry at %s: %v", config.Spec.Registries.ImageRegistry.URL, err)
	}
	if changes := sandboxtest.Diff(before, h1.Snapshot()); len(changes) > 0 {
		t.Errorf("on an idle host: %v", changes)
	}

	// A controller that is switched off and on comes back by itself.
	c.Host("c1").Reboot()
	sandboxtest.Eventually(t, time.Minute, "the API server answers after a reboot", func() bool {
		out, err := c.Host("c1").Run("k0s", "kubectl", "get", "--raw", "/readyz")
		return err == nil && out == "ok"
	})
}
