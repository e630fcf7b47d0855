package mkesdk

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackageComments wants one package comment a package, and an example in
// each public one that runs.
func TestPackageComments(t *testing.T) {
	_, ours := listed(t)
	for _, pkg := range ours {
		comments := 0
		for _, file := range pkg.files() {
			if text := parse(t, file).Doc.Text(); text != "" {
				comments++
				if !strings.HasPrefix(text, "Package "+pkg.Name+" ") {
					t.Errorf("%s: the package comment does not begin with Package %s", file, pkg.Name)
				}
			}
		}
		if comments != 1 {
			t.Errorf("%s has %d package comments, want one", pkg.name(), comments)
		}
	}
}

// TestExamples wants an example that runs in each public package.
func TestExamples(t *testing.T) {
	_, ours := listed(t)
	for _, pkg := range ours {
		if !pkg.public() {
			continue
		}
		tests, err := filepath.Glob(filepath.Join(pkg.name(), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		runs := 0
		for _, name := range tests {
			for _, e := range doc.Examples(parse(t, name)) {
				if e.Output != "" || e.EmptyOutput {
					runs++
				}
			}
		}
		if runs == 0 {
			t.Errorf("%s has no example that runs (a func Example… with an Output comment)", pkg.name())
		}
	}
}

// TestExportedNames wants a comment on every exported name.
func TestExportedNames(t *testing.T) {
	_, ours := listed(t)
	for _, pkg := range ours {
		if !pkg.public() {
			continue
		}
		for _, file := range pkg.files() {
			for _, d := range parse(t, file).Decls {
				for _, name := range uncommented(d) {
					t.Errorf("%s: %s has no comment", file, name)
				}
			}
		}
	}
}

// uncommented returns the exported names of a declaration that neither a comment of
// their own nor one of their group explains.
func uncommented(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && (d.Recv == nil || ast.IsExported(receiver(d))) {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && s.Doc == nil && d.Doc == nil {
					names = append(names, s.Name.Name)
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}

// receiver returns the name of the type that d is a method of.
func receiver(d *ast.FuncDecl) string {
	x := d.Recv.List[0].Type
	for {
		switch t := x.(type) {
		case *ast.StarExpr:
			x = t.X
		case *ast.IndexExpr:
			x = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

func parse(t *testing.T, name string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
