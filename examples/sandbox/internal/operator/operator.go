// Package operator plays MKE in a sandbox: its custom resources, its workloads, and the operator
// that reconciles the MkeConfig.
//
// [Setup] puts into a cluster what an installation of MKE leaves there, [Run] does what its
// operator does afterwards. Both write with the user agent mke-operator, by which the audit log
// tells them from others.
//
// What it does not play yet: a MkeRelease that is not Ready for a while after a controller
// joined, upgrades, and backups. The conditions are there for a test to set.
package operator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mkesdk/mkesdk/hosts"
)

// The namespaces of MKE.
const (
	Namespace        = "mke"
	K0rdentNamespace = "k0rdent"
)

// ConfigName is the name of the one MkeConfig.
const ConfigName = "mke"

// DefaultVersion is the MKE version that is played if none is named.
const DefaultVersion = "4.2.1"

// UserAgent is what the stand-in calls itself towards the API server.
const UserAgent = "mke-operator"

// setupTime bounds Setup where its caller does not.
const setupTime = time.Minute

// The resources that the stand-in works with.
var (
	configs  = schema.GroupVersionResource{Group: "mke.mirantis.com", Version: "v1alpha1", Resource: "mkeconfigs"}
	releases = schema.GroupVersionResource{Group: "mke.mirantis.com", Version: "v1alpha1", Resource: "mkereleases"}
)

// Params are what differs between one MKE cluster and another.
type Params struct {
	// Version of MKE; DefaultVersion if empty.
	Version string
	// Hosts are the hosts that the cluster was made of: its controllers. At least one.
	Hosts []hosts.Spec
	// ImageRegistry is host[:port]/path, and CAData the PEM of its CA, if it needs one.
	ImageRegistry, CAData string
	// DataDir is that of k0s, where it is not the usual one.
	DataDir string
}

func (p Params) validate() error {
	var errs []error
	if len(p.Hosts) == 0 {
		errs = append(errs, errors.New("mke operator: no host to list in the MkeConfig"))
	}
	if p.ImageRegistry == "" {
		errs = append(errs, errors.New("mke operator: no image registry"))
	}
	return errors.Join(errs...)
}

// Setup makes the custom resource definitions, namespaces, workloads, the MkeRelease and the
// MkeConfig, and returns when all are there. What is there already is left as it is. Most of its
// time, 2 to 3 seconds, is the API server's own: it lets nobody create an object sooner than
// two seconds after its definition.
func Setup(ctx context.Context, cfg *rest.Config, p Params) error {
	if p.Version == "" {
		p.Version = DefaultVersion
	}
	if err := p.validate(); err != nil {
		return err
	}
	c, err := connect(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, setupTime, fmt.Errorf("mke operator: not set up within %v", setupTime))
	defer cancel()

	definitions, err := definitions()
	if err != nil {
		return err
	}
	workloads, err := p.workloads()
	if err != nil {
		return err
	}
	config, err := p.config()
	if err != nil {
		return err
	}
	if err := c.createAll(ctx, append(definitions, namespace(Namespace), namespace(K0rdentNamespace))); err != nil {
		return err
	}
	if err := c.createAll(ctx, append(workloads, p.release(), config)); err != nil {
		return err
	}
	return errors.Join(
		c.settle(ctx, releases, p.Version, releaseConditions),
		c.settle(ctx, configs, ConfigName, configConditions),
	)
}

// A client reads and writes objects of any kind.
type client struct{ dynamic.Interface }

func connect(cfg *rest.Config) (client, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = UserAgent
	cfg.QPS, cfg.Burst = 50, 100
	c, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return client{}, fmt.Errorf("mke operator: %w", err)
	}
	return client{c}, nil
}

// createAll creates objects side by side.
func (c client) createAll(ctx context.Context, objs []*unstructured.Unstructured) error {
	var wg sync.WaitGroup
	errs := make([]error, len(objs))
	for i, obj := range objs {
		wg.Go(func() { errs[i] = c.create(ctx, obj) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
