package mkesdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/mkesdk/mkesdk/"

// A goPackage is what go list says of a package.
type goPackage struct {
	ImportPath, Name       string
	GoFiles, Imports, Deps []string
	Module                 *struct {
		Path string
		Main bool
	}
}

// name is the folder of a package of this module, "." for the front page.
func (p goPackage) name() string {
	if p.ImportPath == strings.TrimSuffix(module, "/") {
		return "."
	}
	return strings.TrimPrefix(p.ImportPath, module)
}

// files are what a package is built from on this machine.
func (p goPackage) files() (names []string) {
	for _, f := range p.GoFiles {
		names = append(names, path.Join(p.name(), f))
	}
	return names
}

func (p goPackage) ours() bool { return p.Module != nil && p.Module.Main }

// public reports whether others can import the package. The front page has nothing to
// import.
func (p goPackage) public() bool {
	return p.ours() && p.name() != "." && !slices.Contains(strings.Split(p.name(), "/"), "internal")
}

// goList asks once for all packages of the module and all that they depend on.
var goList = sync.OnceValues(func() (map[string]goPackage, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Name,GoFiles,Imports,Deps,Module", "./...")
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, errors.New(string(exit.Stderr))
	}
	if err != nil {
		return nil, err
	}
	all := map[string]goPackage{}
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all[p.ImportPath] = p
	}
})

// listed returns all packages, by import path, and those of the module in order.
func listed(t *testing.T) (all map[string]goPackage, ours []goPackage) {
	t.Helper()
	all, err := goList()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for _, p := range all {
		if p.ours() {
			ours = append(ours, p)
		}
	}
	slices.SortFunc(ours, func(a, b goPackage) int { return strings.Compare(a.ImportPath, b.ImportPath) })
	return all, ours
}
