package initd

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// What k0s v1.36.3 writes for a worker with kubelet arguments.
const k0sWorker = `[Unit]
Description=k0s - Zero Friction Kubernetes
Documentation=https://docs.k0sproject.io
ConditionFileIsExecutable=/usr/local/bin/k0s

After=network-online.target 
Wants=network-online.target 

[Service]
StartLimitInterval=5
StartLimitBurst=10
ExecStart=/usr/local/bin/k0s worker --token-file=/etc/k0s/k0stoken --kubelet-extra-args=--node-ip=10.0.0.1\x20--v=2

RestartSec=10
Delegate=yes
KillMode=process
LimitCORE=infinity
TimeoutStartSec=0
Restart=always

[Install]
WantedBy=multi-user.target
`

func TestParseUnitOfK0s(t *testing.T) {
	u, err := parseUnit("k0sworker.service", k0sWorker)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/usr/local/bin/k0s", "worker", "--token-file=/etc/k0s/k0stoken", "--kubelet-extra-args=--node-ip=10.0.0.1 --v=2"}
	if len(u.start) != 1 || !reflect.DeepEqual(u.start[0], want) {
		t.Errorf("ExecStart is %q", u.start)
	}
	if u.restart != "always" || u.restartWait != 10*time.Second || u.killMode != "process" || u.limitEvery != 5*time.Second ||
		u.limitBurst != 10 || !reflect.DeepEqual(u.wantedBy, []string{"multi-user.target"}) || u.stopTimeout != 90*time.Second {
		t.Errorf("unit is %+v", u)
	}
}

func TestParseUnitSaysWhere(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"[Service]\nExecStart=/bin/x\nnonsense\n", "x.service:3: "},
		{"[Service\n", "x.service:1: "},
		{"[Service]\nExecStart=/bin/x \"open\n", "x.service:2: ExecStart=: "},
		{"[Service]\nRestartSec=soon\nExecStart=/bin/x\n", "x.service:2: RestartSec=: "},
		{"[Unit]\nDescription=x\n", "no ExecStart="},
	} {
		_, err := parseUnit("x.service", c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want something with %q", c.text, err, c.want)
		}
	}
}

func TestSplitWords(t *testing.T) {
	for in, want := range map[string][]string{
		`a b  c`:             {"a", "b", "c"},
		`a "b c" 'd e'`:      {"a", "b c", "d e"},
		`--x="a b"c`:         {"--x=a bc"},
		`a\ b \x41\x20 "\""`: {"a b", "A ", `"`},
		`"" a`:               {"", "a"},
		``:                   nil,
	} {
		got, err := splitWords(in)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("splitWords(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
}

func TestExpand(t *testing.T) {
	env := map[string]string{"A": "1 2", "B": "b"}
	for in, want := range map[string][]string{
		"$A":          {"1", "2"},
		"${A}":        {"1 2"},
		"x$B":         {"x$B"},
		"x${B}y":      {"xby"},
		"$${B} 100%%": {"${B} 100%"},
		"%n@%H":       {"u.service@host"},
		"${B":         {"${B"},
		"$NONE":       {},
		"50%":         {"50%"},
	} {
		if got := expand(in, "u.service", "host", env); !reflect.DeepEqual(got, want) {
			t.Errorf("expand(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestParseSpan(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"10": 10 * time.Second, "10s": 10 * time.Second, "5min": 5 * time.Minute, "1min 30s": 90 * time.Second,
		"200ms": 200 * time.Millisecond, "1.5": 1500 * time.Millisecond, "infinity": 0,
	} {
		if got, err := parseSpan(in); err != nil || got != want {
			t.Errorf("parseSpan(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "soon", "5x", "-1", "s"} {
		if got, err := parseSpan(in); err == nil {
			t.Errorf("parseSpan(%q) = %v, want an error", in, got)
		}
	}
}

func TestParseEnv(t *testing.T) {
	got := parseEnv("# a comment\nA=1\n B = \"two words\"\nbad line\nC='x'\n1-2=3\n")
	if want := []string{"A=1", "B=two words", "C=x"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzParseUnit(f *testing.F) {
	f.Add(k0sWorker)
	f.Add("[Service]\nExecStart=/bin/sh -c \"a \\\n b\" \\x2")
	f.Add("[Service]\nExecStart=\nExecStart=/x ${A} $B %n\nEnvironment=\"A=1 2\" B=3\nRestartSec=1min 2s")
	f.Fuzz(func(t *testing.T, text string) {
		u, err := parseUnit("x.service", text)
		if err != nil {
			return
		}
		if len(u.start) == 0 || len(u.start[0]) == 0 || u.start[0][0] == "" {
			t.Errorf("accepted without a program: %q", text)
		}
		for _, w := range u.start[0] {
			expand(w, u.name, "host", map[string]string{"A": "1"})
		}
	})
}
