package hosts

import (
	"reflect"
	"strings"
	"testing"
)

// TestSystemdState: what systemd says of a unit, and whether there is a file.
func TestSystemdState(t *testing.T) {
	const file = "/etc/systemd/system/k0sworker.service"
	for name, c := range map[string]struct {
		file, load, active, sub string
		want                    Unit
	}{
		"not installed":                     {"", "not-found", "inactive", "dead", UnitNone},
		"running":                           {file, "loaded", "active", "running", UnitActive},
		"stopped":                           {file, "loaded", "inactive", "dead", UnitStopped},
		"failed":                            {file, "loaded", "failed", "failed", UnitFailed},
		"starting":                          {file, "loaded", "activating", "start", UnitActive},
		"died, to be started again":         {file, "loaded", "activating", "auto-restart", UnitActive},
		"stopping":                          {file, "loaded", "deactivating", "stop-sigterm", UnitUnknown},
		"masked":                            {file, "masked", "inactive", "dead", UnitUnknown},
		"broken":                            {file, "bad-setting", "inactive", "dead", UnitUnknown},
		"written, systemd not told":         {file, "not-found", "inactive", "dead", UnitStopped},
		"file gone, systemd not told":       {"", "loaded", "inactive", "dead", UnitStopped},
		"file gone, still running":          {"", "not-found", "active", "running", UnitActive},
		"failed, file gone":                 {"", "not-found", "failed", "failed", UnitNone},
		"failed, written, systemd not told": {file, "not-found", "failed", "failed", UnitFailed},
		"systemd says nothing of a state":   {file, "loaded", "", "", UnitUnknown},
		"systemd says nothing":              {file, "", "", "", UnitUnknown},
	} {
		got, detail := systemdState(c.file, map[string]string{"LoadState": c.load, "ActiveState": c.active, "SubState": c.sub})
		if got != c.want {
			t.Errorf("%s: %s (%s), want %s", name, got, detail, c.want)
		}
	}
	if got, _ := systemdState(file, nil); got != UnitUnknown {
		t.Errorf("no answer: %s", got)
	}
}

func TestOpenRCState(t *testing.T) {
	for status, want := range map[string]Unit{"0": UnitActive, "8": UnitActive, "3": UnitStopped, "32": UnitFailed, "4": UnitUnknown, "127": UnitUnknown, "": UnitUnknown} {
		if got, _ := openRCState("/etc/init.d/k0sworker", map[string]string{"status": status}); got != want {
			t.Errorf("status %q: %s, want %s", status, got, want)
		}
	}
	if got, _ := openRCState("", nil); got != UnitNone {
		t.Errorf("no script: %s", got)
	}
}

func TestShow(t *testing.T) {
	got := parseShow(lines("Id=a.service\nLoadState=loaded\nX=a=b\n\nId=b.timer\nActiveState=active\n\nLoadState=nameless\n"))
	want := map[string]map[string]string{
		"a.service": {"Id": "a.service", "LoadState": "loaded", "X": "a=b"},
		"b.timer":   {"Id": "b.timer", "ActiveState": "active"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := parseShow(block{lines: []string{"Id=a.service"}, status: Unknown}); len(got) != 0 {
		t.Errorf("read from an answer that failed: %v", got)
	}
}

// TestCommand reads command lines as k0s writes them into units, and as people do.
func TestCommand(t *testing.T) {
	for line, want := range map[string]string{
		"/usr/local/bin/k0s worker --ignore-pre-flight-checks=true --token-file=/etc/k0s/token": "/usr/local/bin/k0s|worker|--ignore-pre-flight-checks=true|--token-file=/etc/k0s/token",
		`/usr/local/bin/k0s worker --kubelet-extra-args=--node-ip=1.2.3.4\x20--v=2`:             "/usr/local/bin/k0s|worker|--kubelet-extra-args=--node-ip=1.2.3.4 --v=2",
		`-/opt/k0s "worker" '--labels=a=b' "a \"b\" c"`:                                         `/opt/k0s|worker|--labels=a=b|a "b" c`,
		`k0s 100%% $$HOME`:   "k0s|100%|$HOME",
		`"" a`:               "|a",
		`a\`:                 `a\`,
		`a \xzz`:             "a|xzz",
		"   ":                "",
		"'an end is missing": "an end is missing",
	} {
		if got := strings.Join(splitCommand(line), "|"); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestK0sOutputs(t *testing.T) {
	for out, want := range map[string]Tri{"v1.36.3+k0s.2": Yes, "v1.35.4+k0s.0": Yes, "1.36.3": Unknown, "": Unknown, "hello": Unknown, "v1.36": Unknown} {
		got, version := parseVersion(lines(out))
		if got != want || (version != "") != (want == Yes) {
			t.Errorf("version %q: %s %q, want %s", out, got, version, want)
		}
	}
	for out, want := range map[string]Tri{"Version v1\nRole worker": Yes, "Role controller": Yes, "Version v1": Unknown, "Role boss": Unknown, "": Unknown} {
		if got, _ := parseStatus(lines(out)); got != want {
			t.Errorf("status %q: %s, want %s", out, got, want)
		}
	}
	for _, b := range []block{{status: No}, {status: Unknown, lines: []string{"Role worker"}}} {
		if got, _ := parseStatus(b); got != b.status {
			t.Errorf("%v: %s", b, got)
		}
	}
}

// TestFindCA: which CA decides, where several could.
func TestFindCA(t *testing.T) {
	ca, other := testCA(t, "this"), testCA(t, "other")
	this, that := print(t, ca), print(t, other)
	none, broken := block{status: No}, lines("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----")
	unread := block{status: Unknown}
	for name, c := range map[string]struct {
		pki, kubelet, token block
		service             bool
		want                CA
	}{
		"nothing":                              {none, none, none, true, CA{Found: No}},
		"worker":                               {none, lines(ca), none, true, CA{Found: Yes, Fingerprint: this, Source: "/d/kubelet.conf"}},
		"controller":                           {lines(ca), lines(ca), none, true, CA{Found: Yes, Fingerprint: this, Source: "/d/pki/ca.crt"}},
		"token of a service that waits":        {none, none, lines(other), true, CA{Found: Yes, Fingerprint: that, Source: "/t"}},
		"token left by a reset":                {none, none, lines(other), false, CA{Found: No}},
		"token after the CA has come":          {none, lines(ca), lines(other), true, CA{Found: Yes, Fingerprint: this, Source: "/d/kubelet.conf"}},
		"two that differ":                      {lines(ca), lines(other), none, true, CA{Found: Unknown, Fingerprint: this, Others: []string{that}, Source: "/d/pki/ca.crt", Why: "/d/pki/ca.crt and /d/kubelet.conf hold different ones"}},
		"one cannot be read":                   {unread, lines(ca), none, true, CA{Found: Unknown, Fingerprint: this, Source: "/d/kubelet.conf", Why: "/d/pki/ca.crt cannot be read as one"}},
		"no certificate":                       {none, lines(""), none, true, CA{Found: Unknown, Why: "/d/kubelet.conf cannot be read as one"}},
		"damaged":                              {broken, none, none, false, CA{Found: Unknown, Why: "/d/pki/ca.crt cannot be read as one"}},
		"cannot be read, and there is a token": {none, unread, lines(ca), true, CA{Found: Unknown, Why: "/d/kubelet.conf cannot be read as one"}},
	} {
		f := Facts{DataDir: "/d", K0s: K0s{TokenFile: "/t", Controller: Service{State: UnitNone}, Worker: Service{State: UnitNone}}}
		if c.service {
			f.K0s.Worker = Service{State: UnitActive, Args: []string{"k0s"}}
		}
		if got := f.findCA(c.pki, c.kubelet, c.token); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v\nwant %+v", name, got, c.want)
		}
	}
	f := Facts{DataDir: "/d", K0s: K0s{Controller: Service{State: UnitNone}, Worker: Service{State: UnitActive}}}
	if got := f.findCA(none, lines(ca), none); got.Found != Unknown {
		t.Errorf("the service's data directory is not known, and yet: %+v", got)
	}
}

// FuzzCommand: a command line that was split and is written again reads the same.
func FuzzCommand(f *testing.F) {
	for _, s := range []string{`/usr/local/bin/k0s worker "--a=b c" '\x20' \x20 %% $$`, `"`, `\`, "", "- a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		words := splitCommand(s)
		var quoted []string
		for _, w := range words {
			quoted = append(quoted, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$").Replace(w)+`"`)
		}
		if again := splitCommand(strings.Join(quoted, " ")); !reflect.DeepEqual(again, words) {
			t.Errorf("%q: %q, then %q", s, words, again)
		}
		parseShow(lines(s))
		parseRC(lines(s))
		parseVersion(lines(s))
		parseStatus(lines(s))
	})
}
