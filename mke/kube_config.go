package mke

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mkesdk/mkesdk/hosts"
)

// The resources that are read and written without generated types, so that fields
// that are not known here stay as they are.
var (
	mkeConfigs  = schema.GroupVersionResource{Group: "mke.mirantis.com", Version: "v1alpha1", Resource: "mkeconfigs"}
	mkeReleases = schema.GroupVersionResource{Group: "mke.mirantis.com", Version: "v1alpha1", Resource: "mkereleases"}
	plans       = schema.GroupVersionResource{Group: "autopilot.k0sproject.io", Version: "v1beta2", Resource: "plans"}
)

// defaultDataDir is k0s's data directory unless MkeConfig says another.
const defaultDataDir = "/var/lib/k0s"

// kubeConfig is [Config] over the Kubernetes API.
type kubeConfig struct {
	client dynamic.Interface
	// ssh, if set, changes how an existing control plane host is reached from here; what
	// is in the cluster stays as it is.
	ssh func(hosts.SSH) hosts.SSH
}

// Get reads the MkeConfig.
func (k kubeConfig) Get(ctx context.Context) (MkeConfig, error) {
	object, err := k.read(ctx)
	if err != nil {
		return MkeConfig{}, err
	}
	c, err := readConfig(object)
	if err != nil {
		return MkeConfig{}, err
	}
	for i := range c.Hosts {
		if k.ssh != nil {
			c.Hosts[i].SSH = k.ssh(c.Hosts[i].SSH)
		}
	}
	return c, nil
}

// read returns the one MkeConfig there is. Its name does not matter.
func (k kubeConfig) read(ctx context.Context) (*unstructured.Unstructured, error) {
	list, err := k.client.Resource(mkeConfigs).Namespace(Namespace).List(ctx, metav1.ListOptions{})
	switch {
	case isNotServed(err):
		return nil, fmt.Errorf("%w: the cluster does not know the resource %s: it is not an MKE 4 cluster", ErrNotFound, mkeConfigs.GroupResource())
	case err != nil:
		return nil, fmt.Errorf("reading the MkeConfig: %w", explain(err))
	case len(list.Items) == 0:
		return nil, fmt.Errorf("%w: there is no MkeConfig in namespace %s: it is not an MKE 4 cluster, or its installation has not finished", ErrNotFound, Namespace)
	case len(list.Items) > 1:
		var names []string
		for _, item := range list.Items {
			names = append(names, item.GetName())
		}
		return nil, fmt.Errorf("%w: there are %d MkeConfigs in namespace %s (%s): an MKE 4 cluster has one", ErrNotStable, len(list.Items), Namespace, strings.Join(names, ", "))
	}
	return &list.Items[0], nil
}

// nameOf names an object for a person.
func nameOf(object *unstructured.Unstructured) string {
	name := object.GetKind() + " " + object.GetName()
	if ns := object.GetNamespace(); ns != "" {
		name = object.GetKind() + " " + ns + "/" + object.GetName()
	}
	return name
}

// readConfig reads what the operations need of an MkeConfig. It says everything that
// is not as it has to be.
func readConfig(object *unstructured.Unstructured) (MkeConfig, error) {
	r := &reader{object: object}
	c := MkeConfig{
		Version: r.text("spec", "version"),
		DataDir: r.text("spec", "k8sProviderSpecs", "dataDir"),
		ImageRegistry: Registry{
			URL:    r.text("spec", "registries", "imageRegistry", "url"),
			CAData: r.text("spec", "registries", "imageRegistry", "caData"),
			Secret: r.text("spec", "registries", "imageRegistry", "credentialsSecretName"),
		},
		ExternalCloud: r.flag("spec", "cloudProvider", "enabled"),
	}
	if c.Version == "" {
		r.bad("spec.version is missing: want the version of MKE, such as %s", SupportedMKE)
	}
	if c.DataDir == "" {
		c.DataDir = defaultDataDir
	}
	if !strings.HasPrefix(c.DataDir, "/") {
		r.bad("spec.k8sProviderSpecs.dataDir is %q: want an absolute path", c.DataDir)
	}
	for i, entry := range r.list("spec", "hosts") {
		spec, err := readEntry(entry)
		if err != nil {
			r.bad("spec.hosts[%d]: %w", i, err)
		}
		c.Hosts = append(c.Hosts, spec)
	}
	if err := errors.Join(r.errs...); err != nil {
		return MkeConfig{}, fmt.Errorf("%s: %w", nameOf(object), err)
	}
	return c, nil
}

// A reader reads fields of an object and keeps what is wrong with them.
type reader struct {
	object *unstructured.Unstructured
	errs   []error
}

func (r *reader) bad(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf(format, args...))
}

// text returns a string field, "" if it is not there.
func (r *reader) text(path ...string) string {
	s, _, err := unstructured.NestedString(r.object.Object, path...)
	if err != nil {
		r.bad("%s is not a string", strings.Join(path, "."))
	}
	return s
}

// flag returns a boolean field, false if it is not there.
func (r *reader) flag(path ...string) bool {
	b, _, err := unstructured.NestedBool(r.object.Object, path...)
	if err != nil {
		r.bad("%s is not true or false", strings.Join(path, "."))
	}
	return b
}

// list returns a list field as it is in the object, not a copy; nil if it is not
// there.
func (r *reader) list(path ...string) []any {
	v, found, err := unstructured.NestedFieldNoCopy(r.object.Object, path...)
	if err == nil && (!found || v == nil) {
		return nil
	}
	l, ok := v.([]any)
	if err != nil || !ok {
		r.bad("%s is not a list", strings.Join(path, "."))
	}
	return l
}
