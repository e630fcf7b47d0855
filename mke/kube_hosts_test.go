package mke

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/mkesdk/mkesdk/hosts"
)

func allow(context.Context) error { return nil }

// entries returns spec.hosts as it is in the cluster.
func entries(t *testing.T, api *dynamicfake.FakeDynamicClient) []any {
	t.Helper()
	o, err := kubeConfig{client: api}.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := unstructured.NestedSlice(o.Object, "spec", "hosts")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// writes counts the updates that were sent.
func writes(api *dynamicfake.FakeDynamicClient) (n int) {
	for _, a := range api.Actions() {
		if a.GetVerb() != "list" {
			n++
		}
	}
	return n
}

// TestAddHosts lists hosts that are listed already, in part or not at all.
func TestAddHosts(t *testing.T) {
	was := object(t, aConfig).Object["spec"].(map[string]any)["hosts"].([]any)
	worker := func(change func(*hosts.Spec)) hosts.Spec {
		s := hosts.Spec{Role: hosts.Worker, SSH: hosts.SSH{Address: "10.0.0.2"}}
		change(&s)
		return s
	}
	for _, tt := range []struct {
		name    string
		spec    hosts.Spec
		changed string // what the entry is afterwards, as YAML; "" if nothing is written
	}{
		{"only the address", worker(func(*hosts.Spec) {}), ""},
		{"all of it, with the defaults", worker(func(s *hosts.Spec) {
			s.SSH.User, s.SSH.Port, s.SSH.KeyPath = "root", 22, "/k"
			s.InstallFlags, s.PrivateInterface = []string{"--labels=a=b"}, "eth1"
		}), ""},
		{"spelled otherwise", worker(func(s *hosts.Spec) { s.SSH.Address = "::ffff:10.0.0.2" }), ""},
		{"other key", worker(func(s *hosts.Spec) { s.SSH.KeyPath = "/other" }),
			"{role: worker, hostname: w1, ssh: {address: 10.0.0.2, keyPath: /other}, installFlags: [--labels=a=b], privateInterface: eth1}"},
		{"other flags", worker(func(s *hosts.Spec) { s.InstallFlags = []string{"--profile=p"} }),
			"{role: worker, hostname: w1, ssh: {address: 10.0.0.2, keyPath: /k}, installFlags: [--profile=p], privateInterface: eth1}"},
		{"an address for the interface", worker(func(s *hosts.Spec) { s.PrivateAddress = "10.1.0.2" }),
			"{role: worker, hostname: w1, ssh: {address: 10.0.0.2, keyPath: /k}, installFlags: [--labels=a=b], privateAddress: 10.1.0.2}"},
		{"a bastion", worker(func(s *hosts.Spec) { s.SSH.Bastion = &hosts.SSH{Address: "1.2.3.4"} }),
			"{role: worker, hostname: w1, ssh: {address: 10.0.0.2, keyPath: /k, bastion: {address: 1.2.3.4, user: root, port: 22}}, installFlags: [--labels=a=b], privateInterface: eth1}"},
		{"a new host", worker(func(s *hosts.Spec) { s.SSH.Address, s.SSH.KeyPath = "fd00::9", "~/k" }),
			"{role: worker, ssh: {address: 'fd00::9', user: root, port: 22, keyPath: ~/k}}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			api := fakeAPI(t, aConfig)
			written, err := kubeConfig{client: api}.AddHosts(t.Context(), []hosts.Spec{tt.spec}, allow)
			if err != nil {
				t.Fatal(err)
			}
			want := was
			if tt.changed == "" {
				if len(written) != 0 || writes(api) != 0 {
					t.Errorf("wrote %v in %d writes, want nothing", written, writes(api))
				}
			} else {
				if !reflect.DeepEqual(written, []string{tt.spec.SSH.Address}) || writes(api) != 1 {
					t.Errorf("wrote %v in %d writes, want %s in one", written, writes(api), tt.spec.SSH.Address)
				}
				entry := object(t, "{apiVersion: v1, kind: X, entry: "+tt.changed+"}").Object["entry"]
				if tt.name == "a new host" {
					want = append(was[:2:2], entry)
				} else {
					want = []any{was[0], entry}
				}
			}
			if got := entries(t, api); !reflect.DeepEqual(got, want) {
				t.Errorf("spec.hosts\n got %v\nwant %v", got, want)
			}
			again, err := kubeConfig{client: api}.AddHosts(t.Context(), []hosts.Spec{tt.spec}, allow)
			if err != nil || len(again) != 0 {
				t.Errorf("the second time it wrote %v, %v", again, err)
			}
		})
	}
}

// TestAddHostsKeeps changes two entries of many fields and nothing else of the object.
func TestAddHostsKeeps(t *testing.T) {
	api := fakeAPI(t, aConfig)
	specs := []hosts.Spec{
		{Role: hosts.ControllerWorker, SSH: hosts.SSH{Address: "10.0.0.1", Port: 22, Bastion: &hosts.SSH{Address: "1.2.3.4", Port: 23}}},
		{Role: hosts.Worker, SSH: hosts.SSH{Address: "10.0.0.3"}},
	}
	if _, err := (kubeConfig{client: api}).AddHosts(t.Context(), specs, allow); err != nil {
		t.Fatal(err)
	}
	want := object(t, strings.NewReplacer("port: 2222", "port: 22", "mark: x", "mark: x, port: 23").Replace(aConfig))
	list := append(want.Object["spec"].(map[string]any)["hosts"].([]any), map[string]any{
		"role": "worker", "ssh": map[string]any{"address": "10.0.0.3", "user": "root", "port": int64(22)},
	})
	if err := unstructured.SetNestedSlice(want.Object, list, "spec", "hosts"); err != nil {
		t.Fatal(err)
	}
	got, err := kubeConfig{client: api}.read(t.Context())
	if err != nil || !reflect.DeepEqual(got.Object, want.Object) {
		t.Errorf("%v\n got %v\nwant %v", err, got, want)
	}
}

// TestAddHostsRefuses what would make another node of an entry, or a guess.
func TestAddHostsRefuses(t *testing.T) {
	twice := strings.Replace(aConfig, "address: 10.0.0.1,", "address: '::ffff:10.0.0.2',", 1)
	stop := errors.New("the lock is lost")
	for name, tt := range map[string]struct {
		config, address string
		guard           func(context.Context) error
		is              error
		want            string
	}{
		"role":      {aConfig, "10.0.0.1", allow, ErrInvalid, `role "controller+worker"`},
		"duplicate": {twice, "10.0.0.2", allow, nil, "2 times"},
		"guard":     {aConfig, "10.0.0.7", func(context.Context) error { return stop }, stop, "lost"},
	} {
		api := fakeAPI(t, tt.config)
		written, err := kubeConfig{client: api}.AddHosts(t.Context(), []hosts.Spec{{Role: hosts.Worker, SSH: hosts.SSH{Address: tt.address}}}, tt.guard)
		if err == nil || tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
		if len(written) != 0 || writes(api) != 0 {
			t.Errorf("%s: wrote %v", name, written)
		}
	}
}

// TestAddHostsContended writes an object that others write too, over a connection that
// loses answers.
func TestAddHostsContended(t *testing.T) {
	conflict := apierrors.NewConflict(mkeConfigs.GroupResource(), "mke", errors.New("the object has been modified"))
	denied := apierrors.NewForbidden(mkeConfigs.GroupResource(), "mke", errors.New(`admission webhook "w" denied the request: the MkeRelease is not Ready`))
	for name, tt := range map[string]struct {
		fail   []error // of the first writes
		lost   bool    // they take effect all the same
		writes int
		want   string // in the error
	}{
		"conflicts":       {[]error{conflict, conflict, conflict}, false, 4, ""},
		"server is away":  {[]error{errors.New("connection refused"), apierrors.NewServiceUnavailable("later")}, false, 3, ""},
		"reply lost":      {[]error{errors.New("connection reset")}, true, 1, ""},
		"webhook":         {[]error{denied}, false, 1, "a check of the cluster's own"},
		"always conflict": {[]error{conflict, conflict, conflict, conflict, conflict, conflict, conflict, conflict, conflict, conflict}, false, 10, "after 10 attempts"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := fakeAPI(t, aConfig)
				n, guarded := 0, 0
				api.PrependReactor("update", "mkeconfigs", func(a clienttesting.Action) (bool, runtime.Object, error) {
					n++
					if n > len(tt.fail) {
						return false, nil, nil
					}
					o := a.(clienttesting.UpdateAction).GetObject()
					if !tt.lost { // somebody else's change comes first
						o = object(t, strings.Replace(aConfig, "hostname: w1", "hostname: w"+strings.Repeat("1", n+1), 1))
					}
					if err := api.Tracker().Update(mkeConfigs, o, "mke"); err != nil {
						t.Error(err)
					}
					return true, nil, tt.fail[n-1]
				})
				written, err := kubeConfig{client: api}.AddHosts(t.Context(), []hosts.Spec{{Role: hosts.Worker, SSH: hosts.SSH{Address: "10.0.0.7"}}},
					func(context.Context) error { guarded++; return nil })
				if n != tt.writes || guarded != n {
					t.Errorf("%d writes, guarded %d times, want %d", n, guarded, tt.writes)
				}
				if tt.want != "" {
					if err == nil || !strings.Contains(err.Error(), tt.want) {
						t.Errorf("error %v, want %q", err, tt.want)
					}
					return
				}
				list := entries(t, api)
				if err != nil || !reflect.DeepEqual(written, []string{"10.0.0.7"}) || len(list) != 3 {
					t.Errorf("wrote %v, %v; the list has %d entries", written, err, len(list))
				}
				if host := list[1].(map[string]any)["hostname"]; !tt.lost && host != "w"+strings.Repeat("1", n) {
					t.Errorf("hostname %v: somebody else's change is gone", host)
				}
			})
		})
	}
}
