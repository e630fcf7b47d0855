package mke

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/mkesdk/mkesdk/hosts"
)

// aConfig is an MkeConfig as it is in a cluster, with fields that nothing here knows.
const aConfig = `
apiVersion: mke.mirantis.com/v1alpha1
kind: MkeConfig
metadata: {name: mke, namespace: mke, resourceVersion: "7", uid: u1, annotations: {kept: "yes"}}
spec:
  version: 4.2.1
  unknown: {deep: [1, {a: b}]}
  k8sProviderSpecs: {dataDir: /data/k0s}
  cloudProvider: {enabled: true, provider: external}
  registries:
    imageRegistry: {url: reg.example.com/mke, caData: PEM, credentialsSecretName: creds}
  hosts:
    - role: controller+worker
      noTaints: true
      ssh: {address: 10.0.0.1, user: admin, port: 2222, keyPath: ~/.ssh/key.pem, timeout: 5, bastion: {address: 1.2.3.4, user: jump, mark: x}}
    - role: worker
      hostname: w1
      ssh: {address: 10.0.0.2, keyPath: /k}
      installFlags: [--labels=a=b]
      privateInterface: eth1
status: {conditions: [{type: Ready, status: "True"}]}
`

// object reads one from YAML.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	var value map[string]any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return o
}

// fakeAPI serves custom resources of the three kinds.
func fakeAPI(t *testing.T, objects ...string) *dynamicfake.FakeDynamicClient {
	t.Helper()
	var all []runtime.Object
	for _, text := range objects {
		all = append(all, object(t, text))
	}
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		mkeConfigs: "MkeConfigList", mkeReleases: "MkeReleaseList", plans: "PlanList",
	}, all...)
}

// notServed makes the API not know a resource, as one without its definition.
func notServed(api *dynamicfake.FakeDynamicClient, resource string) {
	api.PrependReactor("*", resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
		err := apierrors.NewGenericServerResponse(404, a.GetVerb(), a.GetResource().GroupResource(), "", "404 page not found", 0, true)
		return true, nil, err
	})
}

// TestConfigGet reads what an MkeConfig says.
func TestConfigGet(t *testing.T) {
	got, err := kubeConfig{client: fakeAPI(t, aConfig)}.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := MkeConfig{
		Version: "4.2.1", DataDir: "/data/k0s", ExternalCloud: true,
		ImageRegistry: Registry{URL: "reg.example.com/mke", CAData: "PEM", Secret: "creds"},
		Hosts: []hosts.Spec{
			{Role: hosts.ControllerWorker, SSH: hosts.SSH{
				Address: "10.0.0.1", User: "admin", Port: 2222, KeyPath: "~/.ssh/key.pem",
				Bastion: &hosts.SSH{Address: "1.2.3.4", User: "jump"},
			}},
			{Role: hosts.Worker, SSH: hosts.SSH{Address: "10.0.0.2", KeyPath: "/k"}, InstallFlags: []string{"--labels=a=b"}, PrivateInterface: "eth1"},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestConfigDefaults reads an MkeConfig that says next to nothing.
func TestConfigDefaults(t *testing.T) {
	got, err := kubeConfig{client: fakeAPI(t, "{apiVersion: mke.mirantis.com/v1alpha1, kind: MkeConfig, metadata: {name: other, namespace: mke}, spec: {version: v4}}")}.Get(t.Context())
	if want := (MkeConfig{Version: "v4", DataDir: "/var/lib/k0s"}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

// TestConfigKeys replaces the keys of what MkeConfig lists, and nothing in the cluster.
func TestConfigKeys(t *testing.T) {
	api := fakeAPI(t, aConfig)
	ssh := &SSH{KeyFile: "/own", BastionKeyFile: "/own-bastion"}
	got, err := kubeConfig{client: api, ssh: ssh.existing}.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first := got.Hosts[0].SSH
	if first.KeyPath != "/own" || first.Bastion.KeyPath != "/own-bastion" || first.User != "admin" || first.Bastion.User != "jump" {
		t.Errorf("got %+v, bastion %+v", first, first.Bastion)
	}
	for _, a := range api.Actions() {
		if a.GetVerb() != "list" {
			t.Errorf("sent %s", a.GetVerb())
		}
	}
}

// TestConfigMissing is about clusters that are not, or not yet, MKE 4.
func TestConfigMissing(t *testing.T) {
	noCRD := fakeAPI(t)
	notServed(noCRD, "mkeconfigs")
	forbidden := fakeAPI(t)
	forbidden.PrependReactor("list", "mkeconfigs", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(mkeConfigs.GroupResource(), "", errors.New("no"))
	})
	for name, tt := range map[string]struct {
		api  *dynamicfake.FakeDynamicClient
		is   error
		want string
	}{
		"no definition": {noCRD, ErrNotFound, "not an MKE 4 cluster"},
		"no object":     {fakeAPI(t), ErrNotFound, "no MkeConfig in namespace mke"},
		"two objects":   {fakeAPI(t, aConfig, strings.Replace(aConfig, "name: mke,", "name: mke2,", 1)), ErrNotStable, "mke, mke2"},
		"forbidden":     {forbidden, nil, "administrator"},
	} {
		for what, call := range map[string]func(context.Context) error{
			"Get":  func(ctx context.Context) error { _, err := kubeConfig{client: tt.api}.Get(ctx); return err },
			"Busy": func(ctx context.Context) error { _, err := kubeConfig{client: tt.api}.Busy(ctx); return err },
			"AddHosts": func(ctx context.Context) error {
				_, err := kubeConfig{client: tt.api}.AddHosts(ctx, nil, func(context.Context) error { return nil })
				return err
			},
		} {
			if err := call(t.Context()); err == nil || tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %s: error %v, want %v and %q", name, what, err, tt.is, tt.want)
			}
		}
	}
}

// TestConfigWrong says everything that is wrong with an MkeConfig at once, and where.
func TestConfigWrong(t *testing.T) {
	_, err := kubeConfig{client: fakeAPI(t, `
apiVersion: mke.mirantis.com/v1alpha1
kind: MkeConfig
metadata: {name: mke, namespace: mke}
spec:
  k8sProviderSpecs: {dataDir: data}
  cloudProvider: {enabled: 1}
  registries: {imageRegistry: {url: [x]}}
  hosts:
    - {role: worker, ssh: {address: 10.0.0.1, port: "22"}}
    - nonsense
    - {role: worker, ssh: {bastion: {}}, installFlags: [1]}
`)}.Get(t.Context())
	if err == nil {
		t.Fatal("want an error")
	}
	for _, want := range []string{
		"MkeConfig mke/mke", "spec.version is missing", "absolute path", "spec.cloudProvider.enabled", "spec.registries.imageRegistry.url",
		"spec.hosts[0]: ssh.port", "spec.hosts[1]", "spec.hosts[2]: ssh.address is missing", "ssh.bastion.address is missing", "installFlags[0]",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
}

// TestConfigBusy looks at everything that says that something is in progress.
func TestConfigBusy(t *testing.T) {
	config := func(status string) string {
		return "{apiVersion: mke.mirantis.com/v1alpha1, kind: MkeConfig, metadata: {name: mke, namespace: mke}, spec: {version: 4.2.1}, status: {conditions: [" + status + "]}}"
	}
	release := func(name, version, status string) string {
		return "{apiVersion: mke.mirantis.com/v1alpha1, kind: MkeRelease, metadata: {name: " + name + ", namespace: mke}, spec: {version: " + version + "}, status: {conditions: [" + status + "]}}"
	}
	plan := func(name, state string) string {
		return "{apiVersion: autopilot.k0sproject.io/v1beta2, kind: Plan, metadata: {name: " + name + "}, status: {state: " + state + "}}"
	}
	const ready = `{type: Ready, status: "True"}`
	good := []string{config(ready), release("4.2.1", "4.2.1", ready)}
	for _, tt := range []struct {
		name    string
		objects []string
		want    []string // one for each sentence
	}{
		{"nothing", good, nil},
		{"all false", []string{config(`{type: Applying, status: "False"}, {type: Upgrading, status: "False"}`), good[1]}, nil},
		{"applying", []string{config(`{type: Applying, status: "True", reason: Changed, message: new flags}`), good[1]}, []string{"Applying=True, Changed: new flags"}},
		{"several", []string{config(`{type: Upgrading, status: "True"}, {type: Resetting, status: Unknown}, {type: Progressing, status: "True"}`), good[1]}, []string{"Upgrading=True", "Resetting=Unknown", "Progressing=True"}},
		{"being deleted", []string{strings.Replace(good[0], "name: mke,", "name: mke, deletionTimestamp: 2026-11-30T12:00:00Z, finalizers: [x],", 1), good[1]}, []string{"is being deleted since 2026-11-30T12:00:00Z"}},
		{"release not ready", []string{good[0], release("4.2.1", "4.2.1", `{type: Ready, status: "False", reason: Scaling}`)}, []string{"MkeRelease mke/4.2.1 is not ready: it has the condition Ready=False, Scaling"}},
		{"release upgrading", []string{good[0], release("4.2.1", "4.2.1", ready+`, {type: Upgrading, status: "True"}`)}, []string{"MkeRelease mke/4.2.1 has the condition Upgrading=True"}},
		{"release silent", []string{good[0], release("4.2.1", "4.2.1", "")}, []string{"has no condition Ready"}},
		{"release by name", []string{good[0], release("mke-v4.2.1", `""`, ready)}, nil},
		{"release of another version", []string{good[0], release("4.2.0", "4.2.0", ready)}, []string{"no MkeRelease of version 4.2.1"}},
		{"plan over", append(good, plan("autopilot", "Completed")), nil},
		{"plan failed", append(good, plan("autopilot", "ApplyFailed")), nil},
		{"plan in progress", append(good, plan("autopilot", "SchedulableWait")), []string{"autopilot plan autopilot is in progress: SchedulableWait"}},
		{"plan new", append(good, plan("autopilot", `""`)), []string{"about to begin"}},
		{"plan of a later k0s", append(good, plan("autopilot", "Pondering")), []string{"Pondering"}},
		{"plan that k0s ignores", append(good, plan("other", "Schedulable")), nil},
	} {
		got, err := kubeConfig{client: fakeAPI(t, tt.objects...)}.Busy(t.Context())
		if err != nil || len(got) != len(tt.want) {
			t.Errorf("%s: got %q, %v; want %q", tt.name, got, err, tt.want)
			continue
		}
		for i, want := range tt.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%s: got %q, want %q", tt.name, got[i], want)
			}
		}
	}

	without := fakeAPI(t, good[0])
	notServed(without, "plans")
	notServed(without, "mkereleases")
	if got, err := (kubeConfig{client: without}).Busy(t.Context()); err != nil || len(got) != 1 || !strings.Contains(got[0], "mkereleases.mke.mirantis.com") {
		t.Errorf("without definitions: got %q, %v", got, err)
	}
	for _, resource := range []string{"mkereleases", "plans"} {
		api := fakeAPI(t, good...)
		api.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewInternalError(errors.New("broken"))
		})
		if got, err := (kubeConfig{client: api}).Busy(t.Context()); err == nil {
			t.Errorf("%s cannot be read: got %q and no error", resource, got)
		}
	}
}
