package mke

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mkesdk/mkesdk/hosts"
)

// FuzzMergeEntry merges a spec into whatever an entry of MkeConfig may be: it says what
// is wrong or merges, keeps every field that it does not know, and has nothing left to do
// the second time.
func FuzzMergeEntry(f *testing.F) {
	f.Add(`{"role":"worker","hostname":"w1","ssh":{"address":"10.0.0.2","keyPath":"/k","timeout":5},"installFlags":["--labels=a=b"],"privateInterface":"eth1"}`, "10.0.0.2", "root", 22, "/k", "", "--profile=p", "1.2.3.4")
	f.Add(`{"role":"worker","ssh":{"address":"10.0.0.2","port":2222,"bastion":{"address":"1.2.3.4","user":"jump","mark":"x"}},"privateAddress":"10.1.0.2"}`, "::ffff:10.0.0.2", "", 0, "", "fd00::1", "", "1.2.3.4")
	f.Add(`{"role":"controller+worker","ssh":{"address":"10.0.0.1"}}`, "10.0.0.1", "", 0, "", "", "", "")
	f.Add(`{"role":7,"ssh":[]}`, "", "", -1, "", "", "", "")
	f.Add(`{"ssh":{"address":"a","port":1.5,"bastion":null},"installFlags":[null]}`, "A.", "", 0, "", "", "", "b")
	f.Fuzz(func(t *testing.T, text, address, user string, port int, key, private, flag, bastion string) {
		o := &unstructured.Unstructured{}
		data, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "X", "entry": json.RawMessage(text)})
		if err != nil || o.UnmarshalJSON(data) != nil {
			return // no JSON, so nothing that an API server would send
		}
		entry := o.Object["entry"]
		before := o.DeepCopy().Object["entry"]
		spec := hosts.Spec{Role: hosts.Worker, PrivateAddress: private, SSH: hosts.SSH{Address: address, User: user, Port: port, KeyPath: key}}
		if flag != "" {
			spec.InstallFlags = []string{flag}
		}
		if bastion != "" {
			spec.SSH.Bastion = &hosts.SSH{Address: bastion}
		}
		merged, differs, err := mergeEntry(entry, spec)
		if !reflect.DeepEqual(entry, before) {
			t.Fatal("the entry that was read has been changed")
		}
		if err != nil {
			return
		}
		if !differs {
			return // it is not written
		}
		again, differs, err := mergeEntry(merged, spec)
		if err != nil || differs || !reflect.DeepEqual(again, merged) {
			t.Errorf("the second time: %v, differs %t\nfirst  %v\nsecond %v", err, differs, merged, again)
		}
		known := []string{"role", "ssh", "installFlags", "privateAddress", "privateInterface"}
		for k, v := range before.(map[string]any) {
			if !slices.Contains(known, k) && !reflect.DeepEqual(merged[k], v) {
				t.Errorf("%s was %v and is %v", k, v, merged[k])
			}
		}
		was, _ := before.(map[string]any)["ssh"].(map[string]any)
		is, _ := merged["ssh"].(map[string]any)
		for k := range maps.Keys(was) {
			if _, kept := is[k]; !kept {
				t.Errorf("ssh.%s is gone", k)
			}
		}
	})
}
