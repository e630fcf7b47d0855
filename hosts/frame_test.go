package hosts

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/hosts/hoststest"
)

func TestFrame(t *testing.T) {
	f, err := splitFrame("M", "noise\nM begin\nM = a 1 2 \nM = b \nM + c\nx\n\ny\n\nM - c yes\nM + d\n\nM - d no\nM end\nmore")
	want := frame{map[string]string{"a": "1 2", "b": ""}, map[string]block{"c": {[]string{"x", "", "y"}, Yes}, "d": {[]string{}, No}}}
	if err != nil || !reflect.DeepEqual(f, want) {
		t.Errorf("%+v, %v", f, err)
	}
	for name, out := range map[string]string{
		"empty":                "",
		"no begin":             "M end\n",
		"cut off":              "\nM begin\nM = a 1\n",
		"cut off in the end":   "\nM begin\nM = a 1\nM en",
		"value twice":          "\nM begin\nM = a 1\nM = a 1\nM end\n",
		"block twice":          "\nM begin\nM + a\nM - a no\nM + a\nM - a no\nM end\n",
		"block without an end": "\nM begin\nM + a\nM end\n",
		"block ended twice":    "\nM begin\nM + a\nM - a no\nM - a no\nM end\n",
		"block in a block":     "\nM begin\nM + a\nM + b\nM - b no\nM - a no\nM end\n",
		"value in a block":     "\nM begin\nM + a\nM = b 1\nM - a no\nM end\n",
		"another block's end":  "\nM begin\nM + a\nM - b no\nM end\n",
		"no such status":       "\nM begin\nM + a\nM - a maybe\nM end\n",
		"a line between":       "\nM begin\nhello\nM end\n",
		"unknown verb":         "\nM begin\nM ! a\nM end\n",
		"no name":              "\nM begin\nM = \nM end\n",
		"another run's begin":  "\nN begin\nN end\n",
	} {
		if f, err := splitFrame("M", out); err == nil {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestParseIsStrict: the script and its reader are of one build, so nothing may be
// missing and nothing may be there besides.
func TestParseIsStrict(t *testing.T) {
	out := hoststest.Ubuntu("h1", "10.0.0.1").Render("M")
	now := time.Now()
	if _, err := parseFacts("M", []byte(out), now, now); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if !strings.HasPrefix(line, "M = ") {
			continue
		}
		if f, err := parseFacts("M", []byte(strings.Replace(out, line+"\n", "", 1)), now, now); err == nil {
			t.Errorf("without %q: %+v", line, f)
		}
	}
	if f, err := parseFacts("M", []byte(strings.Replace(out, "M end", "M = more 1\nM end", 1)), now, now); err == nil {
		t.Errorf("with a value that is not known: %+v", f)
	}
	_, err := parseFacts("M", []byte(strings.Replace(out, "M = uid 0", "M = uid 1000", 1)), now, now)
	if err == nil || !strings.Contains(err.Error(), "root") {
		t.Errorf("not root: %v", err)
	}
}

// TestNoise: what a login script prints, before and after, even without a line
// break at its end, does not get into the facts.
func TestNoise(t *testing.T) {
	m := hoststest.Ubuntu("h1", "10.0.0.1")
	m.Clock = func() time.Time { return time.Unix(1e9, 0) }
	out := m.Render("M")
	want, err := parseFacts("M", []byte(out), time.Unix(1e9, 0), time.Unix(1e9, 0))
	if err != nil {
		t.Fatal(err)
	}
	noisy := "Welcome!\n{}\nN begin\nM = hostname other\nno line break" + out + "{\"a\": 1}\nM = hostname other\nbye"
	got, err := parseFacts("M", []byte(noisy), time.Unix(1e9, 0), time.Unix(1e9, 0))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v\nwant %+v", got, err, want)
	}
}

// FuzzFacts: whatever a host prints in the place of any line, no unknown becomes a
// yes that lets it in.
func FuzzFacts(f *testing.F) {
	clean := hoststest.Ubuntu("h1", "10.0.0.1")
	worker := clean.WithK0s("v1.36.3+k0s.2").WithService("worker", "active").WithFile("/var/lib/k0s/kubelet.conf", hoststest.Kubeconfig([]byte(testCA(f, "this")), "https://10.0.0.9:6443"))
	worker.StatusRole = "worker"
	openRC := worker.WithFile("/etc/init.d/k0sworker", "command=\"/usr/local/bin/k0s\"\n")
	openRC.Init = "openrc"
	var pages []string
	for _, m := range []hoststest.Machine{clean, worker, openRC, {}} {
		m.Clock = func() time.Time { return time.Unix(1, 0) }
		pages = append(pages, m.Render("M"))
	}
	for i, text := range []string{"", "M = uid 0", "M = hostname X", "M + services", "M - services yes", "M end", "M begin", "Id=k0sworker.service\nActiveState=active\nLoadState=loaded"} {
		f.Add(uint8(i), uint8(i*20), uint8(1), text)
	}
	f.Fuzz(func(t *testing.T, which, from, n uint8, text string) {
		lines := strings.Split(pages[int(which)%len(pages)], "\n")
		at := int(from) % len(lines)
		out := strings.Join(slices.Replace(lines, at, min(len(lines), at+int(n)), text), "\n")
		facts, err := parseFacts("M", []byte(out), time.Unix(0, 0), time.Unix(1, 0))
		if err != nil {
			return
		}
		s := Observe(facts, ClusterView{CAFingerprint: "this"})
		sc := Match(Add, Worker, s)
		if sc.Action != Refuse && (s.Binary == Unknown || s.Unit == UnitUnknown || s.CA == UnknownCluster) {
			t.Errorf("%s: %+v", sc.Action, s)
		}
		if s.CA == ThisCluster {
			t.Errorf("a fingerprint that no certificate has was found: %+v", facts.CA)
		}
		Check("h", facts, ControllerWorker, Bounds{})
		facts.Missing()
		CheckIdentities([]Target{{Facts: facts}, {Facts: facts}}, nil)
	})
}
