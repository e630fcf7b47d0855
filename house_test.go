package mkesdk

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFileLength keeps files small enough to be read at a sitting. Tests may be a
// little longer, as tables are.
func TestFileLength(t *testing.T) {
	for _, name := range sources(t, ".go") {
		most := 300
		if strings.HasSuffix(name, "_test.go") {
			most = 360
		}
		if n := bytes.Count(read(t, name), []byte("\n")); n > most {
			t.Errorf("%s has %d lines, more than %d: which subject can move to a file of its own?", name, n, most)
		}
	}
}

// TestNoLeftovers finds what is not meant to be kept: notes to oneself, the path
// of the machine that something was written on, tests that are skipped without a
// word.
func TestNoLeftovers(t *testing.T) {
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	patterns := map[string]*regexp.Regexp{
		"a note to oneself":           regexp.MustCompile(`\b(` + "TO" + `DO|` + "FIX" + `ME|` + "XX" + `X)\b`),
		"a skip that gives no reason": regexp.MustCompile(`\bt\.(SkipNow|Skip)\(\)`),
	}
	if strings.Count(here, string(filepath.Separator)) > 1 { // "/src" may well be meant
		patterns["the path of this very clone"] = regexp.MustCompile(regexp.QuoteMeta(here) + `\b`)
	}
	for _, name := range sources(t, ".go", ".md", ".yaml", ".sh", ".ci/run") {
		text := read(t, name)
		for what, p := range patterns {
			if at := p.FindIndex(text); at != nil {
				t.Errorf("%s:%d: %s: %s", name, 1+bytes.Count(text[:at[0]], []byte("\n")), what, text[at[0]:at[1]])
			}
		}
	}
}

// TestLibraries holds the packages that others embed to what a library owes its
// caller: the caller's context, the caller's streams, and errors instead of panics.
func TestLibraries(t *testing.T) {
	banned := map[string]string{ // what is not called or named, and what is done instead
		"context.Background": "take a ctx",
		"context.TO" + "DO":  "take a ctx",
		"os.Exit":            "return an error",
		"os.Stdout":          "take an io.Writer",
		"os.Stderr":          "take an io.Writer",
		"fmt.Print":          "take an io.Writer",
		"fmt.Printf":         "take an io.Writer",
		"fmt.Println":        "take an io.Writer",
		"log.Print":          "take a *slog.Logger",
		"log.Printf":         "take a *slog.Logger",
		"log.Println":        "take a *slog.Logger",
		"log.Fatal":          "return an error",
		"log.Fatalf":         "return an error",
		"slog.Default":       "take a *slog.Logger",
		"panic":              "return an error",
		"init":               "say it where it is used",
	}
	allowed := map[string]string{ // file and name: why
		"mke/each.go panic": "hands on the panic of a stage's goroutine, after which the lock is given back",
	}
	for _, name := range sources(t, ".go") {
		if strings.HasPrefix(name, "examples/") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			what := named(n)
			if instead, ok := banned[what]; ok && allowed[name+" "+what] == "" {
				t.Errorf("%s: %s has no place in a library: %s", fset.Position(n.Pos()), what, instead)
			}
			return true
		})
	}
}

// named returns the name that n uses: "pkg.Name", "panic" for its call, "init" for
// the declaration of one.
func named(n ast.Node) string {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		if x, ok := n.X.(*ast.Ident); ok {
			return x.Name + "." + n.Sel.Name
		}
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "panic" {
			return f.Name
		}
	case *ast.FuncDecl:
		if n.Recv == nil && n.Name.Name == "init" {
			return n.Name.Name
		}
	}
	return ""
}

// sources returns the files of all modules whose names end in one of the
// endings, testdata and what a person keeps beside them left out.
func sources(t *testing.T, endings ...string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" || d.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		for _, e := range endings {
			if strings.HasSuffix(name, e) {
				names = append(names, filepath.ToSlash(name))
				break
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
