package hosts

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestLabels(t *testing.T) {
	for name, c := range map[string]struct {
		flags []string
		want  map[string]string
		err   string
	}{
		"none":               {nil, map[string]string{}, ""},
		"one":                {[]string{"--profile=x", "--labels=zone=a"}, map[string]string{"zone": "a"}, ""},
		"several":            {[]string{"--labels=zone=a,example.com/Rack=r-1, empty="}, map[string]string{"zone": "a", "example.com/Rack": "r-1", "empty": ""}, ""},
		"in the next entry":  {[]string{"--labels", "zone=a", "--debug"}, map[string]string{"zone": "a"}, ""},
		"after a space":      {[]string{"--labels zone=a"}, map[string]string{"zone": "a"}, ""},
		"quoted":             {[]string{`--labels="zone=a"`, "--labels 'rack=b'"}, map[string]string{"zone": "a", "rack": "b"}, ""},
		"given twice":        {[]string{"--labels=a=1", "--labels=b=2,a=1"}, map[string]string{"a": "1", "b": "2"}, ""},
		"value with a sign":  {[]string{"--labels=a=b=c"}, map[string]string{}, `"a=b=c" is no label: the value "b=c"`},
		"two values":         {[]string{"--labels=a=1,a=2"}, map[string]string{"a": "1"}, `the label a is declared as "1" and as "2"`},
		"no value":           {[]string{"--labels"}, map[string]string{}, "it has no value"},
		"followed by a flag": {[]string{"--labels", "--debug"}, map[string]string{}, "it has no value"},
		"no sign":            {[]string{"--labels=a"}, map[string]string{}, `"a" is no label`},
		"no key":             {[]string{"--labels==a"}, map[string]string{}, `"=a" is no label: the key ""`},
		"empty pair":         {[]string{"--labels=a=1,"}, map[string]string{"a": "1"}, `"" is no label`},
		"bad key":            {[]string{"--labels=-a=1"}, map[string]string{}, `the key "-a"`},
		"bad prefix":         {[]string{"--labels=Example/a=1"}, map[string]string{}, "no DNS name"},
		"empty prefix":       {[]string{"--labels=/a=1"}, map[string]string{}, "no DNS name"},
		"two slashes":        {[]string{"--labels=a/b/c=1"}, map[string]string{}, `the key "b/c"`},
		"long name":          {[]string{"--labels=" + strings.Repeat("a", 64) + "=1"}, map[string]string{}, "1 to 63"},
		"long value":         {[]string{"--labels=a=" + strings.Repeat("a", 64)}, map[string]string{}, "at most 63"},
		"longest":            {[]string{"--labels=" + strings.Repeat("a", 63) + "=" + strings.Repeat("b", 63)}, map[string]string{strings.Repeat("a", 63): strings.Repeat("b", 63)}, ""},
		"a word on its own":  {[]string{"zone=a"}, map[string]string{}, "does not begin with a hyphen"},
		"a second word":      {[]string{"--labels=a=b", "c=d"}, map[string]string{"a": "b"}, "does not begin with a hyphen"},
		"only hyphens":       {[]string{"--"}, map[string]string{}, "want a flag"},
		"quoted as a whole":  {[]string{`-"x"`}, map[string]string{}, "want a flag"},
		"everything at once": {[]string{"x", "--labels=a,b=c"}, map[string]string{"b": "c"}, `"a" is no label`},
	} {
		got, err := Spec{InstallFlags: c.flags}.Labels()
		if !reflect.DeepEqual(got, c.want) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, %v; want %v, %q", name, got, err, c.want, c.err)
		}
		if _, ok := errors.AsType[*FlagError](err); err != nil && !ok {
			t.Errorf("%s: %T", name, err)
		}
	}
}

func TestInstallArgs(t *testing.T) {
	own := []string{"--data-dir=/var/lib/k0s", "--token-file=/etc/k0s/k0stoken", "--kubelet-extra-args=--node-ip=10.0.0.1"}
	for name, c := range map[string]struct {
		flags []string
		want  []string // after data-dir and token-file
	}{
		"none":      {nil, []string{"--kubelet-extra-args=--node-ip=10.0.0.1"}},
		"some":      {[]string{"--profile x", "--labels", "a=b", "--debug", `--taints="a=b:NoSchedule"`, "-e", "A=B C"}, []string{"--kubelet-extra-args=--node-ip=10.0.0.1", "--profile=x", "--labels=a=b", "--debug", "--taints=a=b:NoSchedule", "-e=A=B C"}},
		"kubelet's": {[]string{"--kubelet-extra-args='--max-pods=200 --v=2'", "--kubelet-extra-args=--v=3"}, []string{"--kubelet-extra-args=--node-ip=10.0.0.1 --max-pods=200 --v=2 --v=3"}},
	} {
		got, err := InstallArgs(Spec{Role: Worker, InstallFlags: c.flags}, own...)
		if want := append([]string{own[0], own[1]}, c.want...); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	if own[2] != "--kubelet-extra-args=--node-ip=10.0.0.1" {
		t.Error("the caller's slice was written to")
	}
	if got, err := InstallArgs(Spec{Role: Worker, InstallFlags: []string{"--kubelet-extra-args=--v=1", "--kubelet-extra-args=--v=2"}}); err != nil || !reflect.DeepEqual(got, []string{"--kubelet-extra-args=--v=1 --v=2"}) {
		t.Errorf("without own: %q, %v", got, err)
	}
}

// TestCollisions: what the software sets itself may not be given, and everything
// that is wrong is said at once.
func TestCollisions(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want []string
	}{
		{Spec{Role: Worker, InstallFlags: []string{"--profile=x", "--enable-cloud-provider", "--kubelet-extra-args=--node-ip=10.0.0.1"}}, nil},
		{Spec{Role: ControllerWorker, InstallFlags: []string{"--no-taints", "--labels=a=b"}}, nil},
		{Spec{Role: Worker, InstallFlags: []string{"--data-dir=/x", "--kubelet-root-dir", "/y", "--token-file=/z", "--force", "--start"}}, []string{"--data-dir", "--kubelet-root-dir", "--token-file", "--force", "--start"}},
		{Spec{Role: ControllerWorker, InstallFlags: []string{"-c=/x", "--config=/x", "--single", "--enable-worker", "--init-only"}}, []string{"-c", "--config", "--single", "--enable-worker", "--init-only"}},
		{Spec{Role: Worker, PrivateAddress: "10.0.0.1", InstallFlags: []string{"--kubelet-extra-args=--v=2 --node-ip=10.0.0.2"}}, []string{"privateAddress 10.0.0.1"}},
		{Spec{Role: Worker, PrivateInterface: "eth1", InstallFlags: []string{"--kubelet-extra-args", "'--node-ip=10.0.0.2'"}}, []string{"privateInterface eth1"}},
		{Spec{Role: Worker, InstallFlags: []string{"--kubelet-extra-args=--hostname-override=x --root-dir=/y"}}, []string{"--hostname-override", "--root-dir"}},
		{Spec{Role: Worker, InstallFlags: []string{"x", "--labels=a", "--data-dir=/x"}}, []string{"hyphen", "--data-dir", "no label"}},
	} {
		got := unjoin(CheckInstallFlags(c.spec))
		if len(got) != len(c.want) {
			t.Errorf("%+v: %v, want %q", c.spec, got, c.want)
			continue
		}
		for i, err := range got {
			e, ok := errors.AsType[*FlagError](err)
			if !ok || e.Index < 0 || e.Index >= len(c.spec.InstallFlags) || !strings.Contains(err.Error(), c.want[i]) {
				t.Errorf("%+v: %v, want %q", c.spec, err, c.want[i])
			}
		}
		if args, err := InstallArgs(c.spec); (err == nil) != (c.want == nil) || err != nil && args != nil {
			t.Errorf("%+v: %q, %v", c.spec, args, err)
		}
	}
}

// FuzzFlags: what is accepted is a flag each, with labels that are labels.
func FuzzFlags(f *testing.F) {
	for _, s := range []string{"--labels=a=b", "--labels\na=b,c=d", "--x y", "-e\nA=B", "'", "--labels=\"a=b\"", "--kubelet-extra-args=--v=1\n--kubelet-extra-args --v=2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := Spec{Role: Worker, InstallFlags: strings.Split(text, "\n")}
		labels, err := s.Labels()
		for k, v := range labels {
			if badLabel(k, v) != "" {
				t.Errorf("%q: %q=%q", text, k, v)
			}
		}
		args, err2 := InstallArgs(s, "--data-dir=/d")
		if err != nil && err2 == nil {
			t.Errorf("%q: %v, and yet %q", text, err, args)
		}
		for _, a := range args {
			if !strings.HasPrefix(a, "-") || strings.HasPrefix(a, "--data-dir=") && a != "--data-dir=/d" {
				t.Errorf("%q: %q", text, args)
			}
		}
	})
}
