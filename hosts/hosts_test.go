package hosts

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestTri(t *testing.T) {
	var zero Tri
	if zero != Unknown || TriOf(true) != Yes || TriOf(false) != No {
		t.Error("the zero Tri is something that was observed")
	}
	for _, v := range []Tri{Unknown, No, Yes} {
		text, err := v.MarshalText()
		var back Tri = 9
		if err != nil || back.UnmarshalText(text) != nil || back != v {
			t.Errorf("%s: %s, %v", v, back, err)
		}
	}
	if err := new(Tri).UnmarshalText([]byte("maybe")); err == nil {
		t.Error("maybe is taken for something")
	}
	for _, s := range []string{anyOf(No, Unknown, Yes).String(), anyOf(No, Unknown).String(), anyOf(No).String()} {
		if s == "" {
			t.Error("no text")
		}
	}
	if anyOf(No, Unknown, Yes) != Yes || anyOf(No, Unknown) != Unknown || anyOf(No, No) != No {
		t.Error("anyOf")
	}
}

func TestValidate(t *testing.T) {
	good := Spec{Role: Worker, SSH: SSH{Address: "10.0.0.1", Bastion: &SSH{Address: "b", Port: 2222}}, InstallFlags: []string{"--labels=a=b"}}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	specs, err := Load("hosts.yaml", []byte(documented))
	if err != nil || specs[0].Validate() != nil {
		t.Errorf("%v, %v", err, specs[0].Validate())
	}
	loop := &SSH{Address: "b"}
	loop.Bastion = loop
	for name, c := range map[string]struct {
		s    Spec
		want []string
	}{
		"nothing":    {Spec{}, []string{`role "": want worker`, "ssh.address"}},
		"everything": {Spec{Role: "x", SSH: SSH{Address: "a b", Port: 70000, Bastion: &SSH{}}, PrivateAddress: "h", PrivateInterface: "e", InstallFlags: []string{"--force"}}, []string{"role", "ssh.address", "ssh.port", "ssh.bastion.address", "both", "privateAddress", "--force"}},
		"notation":   {Spec{Role: Worker, SSH: SSH{Address: "[FD00::1]:22"}}, []string{`want "[FD00::1]:22" as "fd00::1", its port apart`}},
		"a loop":     {Spec{Role: Worker, SSH: *loop}, []string{"more than 8 bastions"}},
	} {
		got := unjoin(c.s.Validate())
		if len(got) != len(c.want) {
			t.Errorf("%s: %v", name, got)
			continue
		}
		for i := range got {
			if !strings.Contains(got[i].Error(), c.want[i]) {
				t.Errorf("%s: %v, want %q", name, got[i], c.want[i])
			}
		}
	}
}

func TestWithDefaults(t *testing.T) {
	b := &SSH{Address: "b"}
	got := SSH{Address: "h", Bastion: b}.WithDefaults()
	if want := (SSH{Address: "h", User: "root", Port: 22, Bastion: &SSH{Address: "b", User: "root", Port: 22}}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if b.User != "" {
		t.Error("the caller's bastion was written to")
	}
}

// TestSpecJSON: an entry in JSON is an entry of MkeConfig.
func TestSpecJSON(t *testing.T) {
	specs, err := Load("hosts.yaml", []byte(documented))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(specs[0])
	const want = `{"role":"worker","ssh":{"address":"10.0.1.15","user":"root","keyPath":"~/.ssh/key.pem","port":22,"bastion":{"address":"1.2.3.4","user":"root","keyPath":"~/.ssh/bastion.pem","port":22}},"installFlags":["--profile=custom-profile","--labels=zone=a"],"privateAddress":"10.0.1.15"}`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
	var back Spec
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, specs[0]) {
		t.Errorf("%+v, %v", back, err)
	}
}
