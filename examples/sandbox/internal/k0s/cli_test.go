package k0s

import (
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
)

func testApp(out, err *strings.Builder) *app {
	return &app{args: []string{"k0s"}, stdin: strings.NewReader(""), out: out, err: err, log: newLogger(err, slog.LevelWarn)}
}

// Each flag of a recorded help is one that the command takes, with the recorded letter and default.
func TestFlags(t *testing.T) {
	line := regexp.MustCompile(`^\s+(?:-(\w), )?\s*--([\w-]+)(?: (\S+))?\s{2,}(.*?)(?: \(default (.*)\))?$`)
	files, err := filepath.Glob("help/*.txt")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		cmd := find(testApp(new(strings.Builder), new(strings.Builder)).rootCommand(), name)
		if cmd == nil {
			t.Errorf("%s: no such command", name)
			continue
		}
		if cmd.DisableFlagParsing || name == "kubeconfig" || name == "k0s" {
			continue // not played, or nothing but --help
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{"help": true}
		for _, l := range strings.Split(string(text), "\n") {
			m := line.FindStringSubmatch(l)
			if m == nil || m[2] == "help" {
				continue
			}
			seen[m[2]] = true
			f := cmd.Flag(m[2])
			if f == nil {
				t.Errorf("%s: no --%s", cmd.CommandPath(), m[2])
				continue
			}
			if f.Shorthand != m[1] {
				t.Errorf("%s --%s: short form %q, the real one %q", cmd.CommandPath(), m[2], f.Shorthand, m[1])
			}
			// A switch shows no default but true; the real defaults of -v differ by command.
			if want := strings.Trim(m[5], `"`); want != "" && want != "false" && f.DefValue != want && m[2] != "verbose" && m[2] != "logging" && !sameDuration(f.DefValue, want) {
				t.Errorf("%s --%s: default %q, the real one %q", cmd.CommandPath(), m[2], f.DefValue, want)
			}
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !seen[f.Name] {
				t.Errorf("%s: the real one has no --%s", cmd.CommandPath(), f.Name)
			}
		})
	}
}

func sameDuration(a, b string) bool {
	x, err := time.ParseDuration(a)
	y, err2 := time.ParseDuration(b)
	return err == nil && err2 == nil && x == y
}

// find gets the command whose help has this name: words joined by dashes.
func find(root *cobra.Command, name string) *cobra.Command {
	if name == "k0s" {
		return root
	}
	var found *cobra.Command
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if strings.ReplaceAll(strings.TrimPrefix(c.CommandPath(), "k0s "), " ", "-") == name {
			found = c
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	return found
}

// What is asked of the program and not played is refused; help is there where it was recorded.
func TestMainRefuses(t *testing.T) {
	for _, tc := range []struct {
		args   []string
		status int
		out    string
		err    string
	}{
		{[]string{"version"}, 0, "v1.36.3+k0s.2\n", ""},
		{[]string{"version", "--all"}, 0, "k0s : v1.36.3+k0s.2\nrunc : ", ""},
		{[]string{"--help"}, 0, "k0s - The zero friction", ""},
		{[]string{"install", "worker", "--help"}, 0, "Install k0s worker on a brand-new system", ""},
		{[]string{"backup", "--help"}, 0, "Back-Up k0s configuration", ""},
		{[]string{"backup", "--save-path", "/tmp"}, 1, "", "Error: k0s backup is not part of the stand-in\n"},
		{[]string{"restore", "x"}, 1, "", "Error: k0s restore is not part of the stand-in\n"},
		{[]string{"etcd", "leave"}, 1, "", "Error: k0s etcd leave is not part of the stand-in\n"},
		{[]string{"token", "pre-shared"}, 1, "", "Error: k0s token pre-shared is not part of the stand-in\n"},
		{[]string{"controller", "--single"}, 1, "", "Error: --single is not part of the stand-in\n"},
		{[]string{"status", "--nonsense"}, 1, "", "Error: unknown flag: --nonsense\n"},
		{[]string{"worker", "--taints", "a=b:Often"}, 1, "", "Error: "},
	} {
		if tc.args[0] == "worker" {
			continue // would make directories of the machine
		}
		var out, err strings.Builder
		status := Main(t.Context(), append([]string{"k0s"}, tc.args...), strings.NewReader(""), &out, &err)
		if status != tc.status || !strings.HasPrefix(out.String(), tc.out) || !strings.HasPrefix(err.String(), tc.err) {
			t.Errorf("%q: status %d\n%s%s", tc.args, status, out.String(), err.String())
		}
	}
}

// Only flags that were given get into the service, sorted, paths absolute.
func TestServiceArgs(t *testing.T) {
	var a app
	a.args = []string{"k0s"}
	cmd := a.installCommand()
	worker, _, err := cmd.Find([]string{"worker"})
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.ParseFlags([]string{
		"--token-file", "../t", "--force", "--labels", "b=2,a=1", "--labels=c=3", "--taints", "x=y:NoSchedule", "--taints=z:NoExecute", "-e", "A=B",
		"--kubelet-extra-args=--node-ip=10.0.0.1 --v=2", "--ignore-pre-flight-checks", "-l", "etcd=info",
	}); err != nil {
		t.Fatal(err)
	}
	got, err := serviceArgs(worker.Flags())
	if err != nil {
		t.Fatal(err)
	}
	parent, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"--ignore-pre-flight-checks=true", "--kubelet-extra-args=--node-ip=10.0.0.1 --v=2", "--labels=a=1,b=2,c=3", "--logging=etcd=info",
		"--taints=x=y:NoSchedule,z:NoExecute", "--token-file=" + parent + "/t",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	unit := unitText("/opt/my k0s", append([]string{"worker"}, got...), []string{"A=B"})
	if !strings.Contains(unit, `ExecStart=/opt/my\x20k0s worker --ignore-pre-flight-checks=true --kubelet-extra-args=--node-ip=10.0.0.1\x20--v=2 `) ||
		!strings.Contains(unit, "\nEnvironment=\"A=B\"\n\nRestartSec=10\n") {
		t.Error(unit)
	}
}

func TestTaints(t *testing.T) {
	got, err := parseTaints([]string{"a=b:NoSchedule", "c:NoExecute", "d"})
	want := []corev1.Taint{{Key: "a", Value: "b", Effect: "NoSchedule"}, {Key: "c", Effect: "NoExecute"}, {Key: "d"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Error(got, err)
	}
	for _, bad := range []string{"", "=b:NoSchedule", "a:Often", "a=b:NoSchedule:x", "a=b=c:NoSchedule"} {
		if got, err := parseTaints([]string{bad}); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

// A log line has logrus's form: attributes sorted, quoted only if need be.
func TestLogLine(t *testing.T) {
	var b strings.Builder
	log := newLogger(&b, slog.LevelInfo)
	log.Debug("not shown")
	log.With("component", "etcd").Warn("two words", "a", "x=y", "path", "/var/lib/k0s")
	log.Info("Staging", "empty", "")
	got := strings.Split(normal(b.String()), "\n")
	want := []string{
		`time="…" level=warning msg="two words" a="x=y" component=etcd path=/var/lib/k0s`, `time="…" level=info msg=Staging empty=""`, "",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}

// A knob for one start is gone after it; a knob that cannot be read keeps k0s from starting.
func TestKnobs(t *testing.T) {
	dir := t.TempDir()
	k, err := readKnobs(dir)
	if err != nil || k.statusDelay != defaultStatusDelay || k.kubelet.NeverRegister || k.kubelet.NotReady() {
		t.Errorf("%+v, %v", k, err)
	}
	for name, text := range map[string]string{"never-register": "", "slow-start": "3s\n", "status-delay": "0s", "not-ready": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	k, err = readKnobs(dir)
	if err != nil || !k.kubelet.NeverRegister || k.kubelet.NeverBootstrap || k.kubelet.StartDelay != 3*time.Second || k.statusDelay != 0 || !k.kubelet.NotReady() {
		t.Errorf("%+v, %v", k, err)
	}
	if k, err = readKnobs(dir); err != nil || k.kubelet.NeverRegister {
		t.Errorf("again: %+v, %v", k, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "slow-start"), []byte("soon"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readKnobs(dir); err == nil || !strings.Contains(err.Error(), "slow-start") {
		t.Errorf("%v", err)
	}
}

func TestExtraArgs(t *testing.T) {
	got := extraArgs(`--node-ip=10.0.0.1  --v=2 --node-labels="a=b,c=d" --flag`)
	want := map[string]string{"--node-ip": "10.0.0.1", "--v": "2", "--node-labels": "a=b,c=d", "--flag": ""}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	if _, err := netip.ParseAddr(got["--node-ip"]); err != nil {
		t.Error(err)
	}
}

func FuzzPairs(f *testing.F) {
	for _, s := range []string{"a=b", "a=b,c=d", " a = b ,", "a", "=", "a=b=c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var p pairs
		if p.Set(s) != nil {
			return
		}
		var again pairs
		if text := p.String(); text != "" && again.Set(text) == nil && again.String() != text {
			t.Errorf("%q became %q, then %q", s, text, again.String())
		}
	})
}
