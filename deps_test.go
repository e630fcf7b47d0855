package mkesdk

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A place is what a package may reach, and why.
type place struct {
	siblings []string // packages of this module, directly or not
	modules  []string // modules, directly or not; anything if nil
	most     int      // most packages beyond the standard library, those of this module left out
	why      string
}

// places is the picture in CONTRIBUTING.md as data. Every package stands here; an internal
// one that does not is part of the package that it is internal to.
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
		modules:  []string{"golang.org/x/crypto", "golang.org/x/sys", "go.yaml.in/yaml/v3"}, most: 14,
		why: "what a host is does not depend on the cluster that it joins: no Kubernetes, no etcd",
	},
	"hosts/hoststest": {
		siblings: []string{"transport", "transport/transporttest", "hosts"}, most: 14,
		why: "a simulated machine is text, not a cluster",
	},
	"etcdverify": {
		modules: []string{},
		why:     "verdicts are pure: they are read, tested and reused without an etcd",
	},
	"registry": {
		most: 30,
		why:  "asking a registry needs no SSH and no Kubernetes: connections come in as a func",
	},
	"mke": {
		siblings: []string{"transport", "hosts", "etcdverify", "registry"}, most: 560,
		why: "only the operations know all parts",
	},
	"mke/internal/sim": {
		siblings: []string{"transport", "transport/transporttest", "hosts", "hosts/hoststest", "etcdverify", "registry", "mke"},
		most:     560,
		why:      "a whole cluster in memory, for the tests of mke alone",
	},
}

// homes says which packages may import a library themselves: one, so that what
// it weighs, and how it fails, is known in one place. Its tests are left out.
var homes = map[string][]string{
	"github.com/google/go-containerregistry": {"registry"},
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
	all, ours := listed(t)
	for _, pkg := range ours {
		may, ok := places[partOf(pkg.name())]
		if !ok && pkg.name() != "." {
			t.Errorf("%s has no place in deps_test.go: who may it know, and why?", pkg.name())
			continue
		}
		beyond := 0
		for _, path := range pkg.Deps {
			dep := all[path]
			sibling := partOf(dep.name())
			switch {
			case dep.Module == nil || sibling == partOf(pkg.name()): // the standard library, or itself
			case dep.ours() && !slices.Contains(may.siblings, sibling):
				t.Errorf("%s must not reach %s: %s", pkg.name(), sibling, may.why)
			case dep.ours():
			case may.modules != nil && !slices.Contains(may.modules, dep.Module.Path):
				t.Errorf("%s must not reach %s (%s): %s", pkg.name(), dep.Module.Path, path, may.why)
			default:
				beyond++
			}
		}
		if may.most > 0 && beyond > may.most {
			t.Errorf("%s pulls in %d packages beyond the standard library, more than %d: %s", pkg.name(), beyond, may.most, may.why)
		}
	}
}

// TestHomes holds each library to its home.
func TestHomes(t *testing.T) {
	all, ours := listed(t)
	for _, pkg := range ours {
		for _, path := range pkg.Imports {
			dep := all[path]
			if dep.Module == nil || dep.ours() {
				continue
			}
			if home, ok := homes[dep.Module.Path]; !ok {
				t.Errorf("%s imports %s, which has no home in deps_test.go", pkg.name(), dep.Module.Path)
			} else if !slices.Contains(home, partOf(pkg.name())) {
				t.Errorf("%s imports %s, whose home is %s", pkg.name(), dep.Module.Path, strings.Join(home, " and "))
			}
		}
	}
}

// TestRequirements holds go.mod to the libraries that have a home: each one that
// is required directly weighs on everybody who embeds the SDK.
func TestRequirements(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{if not .Indirect}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "all").Output()
	if err != nil {
		t.Fatal(err)
	}
	for mod := range strings.FieldsSeq(string(out)) {
		if homes[mod] == nil {
			t.Errorf("go.mod requires %s, which has no home in deps_test.go", mod)
		}
	}
}

// partOf returns the package that pkg is a part of: itself, unless it is internal and
// has no place of its own.
func partOf(pkg string) string {
	owner, _, internal := strings.Cut(pkg, "/internal/")
	if _, ok := places[pkg]; internal && !ok {
		return owner
	}
	return pkg
}
