package mkesdk

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/api anew")

// TestAPI holds the exported names of each public package against
// testdata/api. A change of the API then shows in the diff of the commit that
// makes it, and is meant: go test -run TestAPI -update .
func TestAPI(t *testing.T) {
	kept := map[string]bool{}
	_, ours := listed(t)
	for _, pkg := range ours {
		if !pkg.public() {
			continue
		}
		name := filepath.Join("testdata", "api", strings.ReplaceAll(pkg.name(), "/", "_")+".txt")
		kept[name] = true
		got := apiOf(t, pkg)
		if *update {
			if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Errorf("%v: run go test -run TestAPI -update . and look at what it wrote", err)
			continue
		}
		if got != string(want) {
			t.Errorf("the API of %s is not that of %s:\n%s%s", pkg.name(), name,
				lost("-", string(want), got), lost("+", got, string(want)))
		}
	}
	files, err := filepath.Glob("testdata/api/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if !kept[name] {
			t.Errorf("%s is of no package", name)
		}
	}
}

// apiOf returns the exported declarations of a package, without comments or
// bodies, sorted: what a program that compiles against it can depend on.
func apiOf(t *testing.T, pkg goPackage) string {
	t.Helper()
	var decls []string
	for _, file := range pkg.files() {
		fset := token.NewFileSet()
		tree, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(tree)
		for _, d := range tree.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil && !ast.IsExported(receiver(d)) {
					continue
				}
				d.Body = nil
			case *ast.GenDecl:
				if d.Tok == token.IMPORT {
					continue
				}
			}
			var text bytes.Buffer
			config := printer.Config{Mode: printer.TabIndent | printer.UseSpaces, Tabwidth: 8}
			if err := config.Fprint(&text, fset, d); err != nil {
				t.Fatal(err)
			}
			decls = append(decls, text.String()+"\n")
		}
	}
	slices.Sort(decls)
	return strings.Join(decls, "")
}

// lost returns the lines of a that b does not have, each behind a mark.
func lost(mark, a, b string) (lines string) {
	have := strings.Split(b, "\n")
	for line := range strings.SplitSeq(a, "\n") {
		if !slices.Contains(have, line) {
			lines += mark + " " + line + "\n"
		}
	}
	return lines
}
