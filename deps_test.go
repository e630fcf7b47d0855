package mkesdk

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/mkesdk/mkesdk/"

// A place is what a package may reach, and why.
type place struct {
	siblings []string // packages of this module, directly or not
	modules  []string // modules, directly or not; anything if nil
	most     int      // most packages beyond the standard library, those of this module left out
	why      string
}

// places is the picture in CONTRIBUTING.md as data. Every package stands here.
var places = map[string]place{
	"transport": {
		modules: []string{"golang.org/x/crypto", "golang.org/x/sys"}, most: 12,
		why: "whoever only wants a sound SSH connection gets nothing else",
	},
	"transport/transporttest": {
		siblings: []string{"transport"},
		modules:  []string{"golang.org/x/crypto", "golang.org/x/sys"}, most: 12,
		why: "the fake must cost no more than what it fakes",
	},
	"hosts": {
		siblings: []string{"transport"},
		modules: []string{
			"golang.org/x/crypto", "golang.org/x/sys", "go.yaml.in/yaml/v3",
			"github.com/opencontainers/selinux", "github.com/cyphar/filepath-securejoin",
		}, most: 30,
		why: "what a host is does not depend on the cluster that it joins: no Kubernetes, no etcd",
	},
	"hosts/hoststest": {
		siblings: []string{"transport", "transport/transporttest", "hosts"}, most: 30,
		why: "a simulated machine is text, not a cluster",
	},
	"etcdverify": {
		modules: []string{},
		why:     "verdicts are pure: they are read, tested and reused without an etcd",
	},
	"registry": {
		most: 90,
		why:  "asking a registry needs no SSH and no Kubernetes: connections come in as a func",
	},
	"mke": {
		siblings: []string{"transport", "hosts", "etcdverify", "registry"}, most: 620,
		why: "only the operations know all parts",
	},
	"mke/internal/sim": {
		siblings: []string{"transport", "transport/transporttest", "hosts", "hosts/hoststest", "etcdverify", "registry", "mke"},
		most:     620,
		why:      "a whole cluster in memory, for the tests of mke alone",
	},
}

// homes says which packages may import a library themselves: one, so that what
// it weighs, and how it fails, is known in one place. Its tests are left out.
var homes = map[string][]string{
	"github.com/google/go-containerregistry": {"registry"},
	"github.com/opencontainers/selinux":      {"hosts"},
	"go.etcd.io/etcd/client/v3":              {"mke"},
	"go.etcd.io/etcd/api/v3":                 {"mke"},
	"go.uber.org/zap":                        {"mke"}, // etcd's client logs to nothing else
	"google.golang.org/grpc":                 {"mke"}, // etcd's client speaks it
	"go.yaml.in/yaml/v3":                     {"hosts"},
	"golang.org/x/crypto":                    {"transport", "transport/transporttest"},
	"k8s.io/api":                             {"mke", "mke/internal/sim"},
	"k8s.io/apimachinery":                    {"mke", "mke/internal/sim"},
	"k8s.io/client-go":                       {"mke"},
}

// TestPlaces holds each package to its place in the picture.
func TestPlaces(t *testing.T) {
	packages := list(t, "{{.ImportPath}}", "./...")
	for _, path := range packages {
		if pkg, ok := strings.CutPrefix(path, module); ok {
			if _, ok := places[pkg]; !ok {
				t.Errorf("%s has no place in deps_test.go: who may it know, and why?", pkg)
			}
		}
	}
	for pkg, may := range places {
		if !slices.Contains(packages, module+pkg) {
			continue // it comes with a later version
		}
		beyond := 0
		for _, line := range list(t, "{{.ImportPath}} {{with .Module}}{{.Path}}{{end}}", "-deps", "./"+pkg) {
			path, mod, _ := strings.Cut(line, " ")
			sibling, ours := strings.CutPrefix(path, module)
			switch {
			case mod == "" || sibling == pkg: // the standard library, or itself
			case ours && !slices.Contains(may.siblings, sibling):
				t.Errorf("%s must not reach %s: %s", pkg, sibling, may.why)
			case ours:
			case may.modules != nil && !slices.Contains(may.modules, mod):
				t.Errorf("%s must not reach %s (%s): %s", pkg, mod, path, may.why)
			default:
				beyond++
			}
		}
		if may.most > 0 && beyond > may.most {
			t.Errorf("%s pulls in %d packages beyond the standard library, more than %d: %s", pkg, beyond, may.most, may.why)
		}
	}
}

// TestHomes holds each library to its home.
func TestHomes(t *testing.T) {
	for _, line := range list(t, `{{.ImportPath}} {{join .Imports " "}}`, "./...") {
		fields := strings.Fields(line)
		pkg := strings.TrimPrefix(fields[0], module)
		for _, path := range fields[1:] {
			if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") || strings.HasPrefix(path, module) {
				continue
			}
			library := libraryOf(path)
			if library == "" {
				t.Errorf("%s imports %s, which has no home in deps_test.go", pkg, path)
			} else if !slices.Contains(homes[library], pkg) {
				t.Errorf("%s imports %s, whose home is %s", pkg, path, strings.Join(homes[library], " and "))
			}
		}
	}
}

// TestRequirements holds go.mod to the libraries that have a home: each one that
// is required directly weighs on everybody who embeds the SDK.
func TestRequirements(t *testing.T) {
	for _, mod := range list(t, "{{if not .Indirect}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "-m", "all") {
		if mod != "" && homes[mod] == nil {
			t.Errorf("go.mod requires %s, which has no home in deps_test.go", mod)
		}
	}
}

// libraryOf returns the one of homes that path is of, or "".
func libraryOf(path string) string {
	for _, library := range slices.Sorted(maps.Keys(homes)) {
		if path == library || strings.HasPrefix(path, library+"/") {
			return library
		}
	}
	return ""
}

// list runs go list and returns its lines.
func list(t *testing.T, format string, args ...string) []string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list", "-f", format}, args...)...).Output()
	if err != nil {
		if exit, ok := err.(*exec.ExitError); ok {
			t.Fatalf("go list %s: %s", strings.Join(args, " "), exit.Stderr)
		}
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}
