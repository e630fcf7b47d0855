package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/host"
)

// How long the parts of a cluster may take to come up: far more than they do on a machine that
// does much else at the same time.
const (
	apiWait  = 90 * time.Second
	nodeWait = 90 * time.Second
	askEvery = 50 * time.Millisecond
)

// awaitAPI waits until the controller has written its administrator's kubeconfig and the API
// server that it names is ready. It returns the kubeconfig with the controller's address.
func awaitAPI(ctx context.Context, m *host.Machine, p Plan) ([]byte, error) {
	var text []byte
	err := until(ctx, apiWait, func() error {
		if text == nil {
			data, err := m.ReadFile(adminPath)
			if errors.Is(err, fs.ErrNotExist) {
				return errors.New("k0s has not written its " + adminPath + " yet")
			}
			if err != nil {
				return err
			}
			if text, err = readdress(data, p.Address); err != nil {
				return err
			}
		}
		_, err := get(ctx, text, "/readyz")
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the API server of %s (see `sandbox logs %s`): %w", p.Name, p.Name, err)
	}
	return text, nil
}

// readdress makes a kubeconfig of the controller's own one that is good from elsewhere.
func readdress(kubeconfig []byte, address string) ([]byte, error) {
	cfg, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", adminPath, err)
	}
	for name, c := range cfg.Clusters {
		u, err := url.Parse(c.Server)
		if err != nil {
			return nil, fmt.Errorf("%s: cluster %s: %w", adminPath, name, err)
		}
		u.Host = net.JoinHostPort(address, u.Port())
		c.Server = u.String()
	}
	return clientcmd.Write(*cfg)
}

// awaitNode waits until a Node is Ready.
func awaitNode(ctx context.Context, kubeconfig []byte, name string) error {
	err := until(ctx, nodeWait, func() error {
		body, err := get(ctx, kubeconfig, "/api/v1/nodes/"+name)
		if err != nil {
			return err
		}
		return nodeReady(body)
	})
	if err != nil {
		return fmt.Errorf("node %s: %w", name, err)
	}
	return nil
}

func nodeReady(body []byte) error {
	var node struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := json.Unmarshal(body, &node); err != nil {
		return err
	}
	for _, c := range node.Status.Conditions {
		if c.Type == "Ready" {
			if c.Status == "True" {
				return nil
			}
			return fmt.Errorf("not Ready: %s", c.Message)
		}
	}
	return errors.New("it says nothing of being Ready")
}

// until asks again and again until ok has no error, ctx ends, or the time is up: then it returns
// the last error.
func until(ctx context.Context, wait time.Duration, ok func() error) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		err := ok()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w; last: %w", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// get asks the API server for a path.
func get(ctx context.Context, kubeconfig []byte, path string) ([]byte, error) {
	cfg, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	cfg.Timeout = 5 * time.Second
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.Host+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %.200s", path, resp.Status, body)
	}
	return body, nil
}
