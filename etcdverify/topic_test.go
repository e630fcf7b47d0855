package etcdverify_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mkesdk/mkesdk/etcdverify"
)

var update = flag.Bool("update", false, "write docs/runbook.md anew from the texts of this package")

// declared are the topics that this package declares, and so can return.
func declared(t *testing.T) []etcdverify.Topic {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "topic.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []etcdverify.Topic
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Topic" {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, etcdverify.Topic(text))
		}
		return true
	})
	return all
}

// TestRunbook wants a text for every topic that can be returned, and no text for
// nothing. Each has the same six parts, because whoever reads it at night looks for
// them in the same place.
func TestRunbook(t *testing.T) {
	all := declared(t)
	if len(all) == 0 || !slices.Equal(slices.Sorted(slices.Values(all)), slices.Sorted(slices.Values(etcdverify.Topics()))) {
		t.Errorf("declared topics %v, Topics %v", all, etcdverify.Topics())
	}
	files, err := filepath.Glob("runbook/*.md")
	if err != nil || len(files) != len(all) {
		t.Errorf("%d texts for %d topics, %v", len(files), len(all), err)
	}
	reference := regexp.MustCompile(`\*([a-z]+(?:-[a-z]+)+)\*`)
	for _, topic := range all {
		text, ok := etcdverify.Runbook(topic)
		if !ok {
			t.Errorf("%s has no text", topic)
			continue
		}
		if !strings.HasPrefix(text, "# "+string(topic)+": ") || strings.Contains(text, "{{") || strings.Contains(text, "\n# ") {
			t.Errorf("%s: its first line is not its title, or there is another title, or something was not filled in:\n%s", topic, text)
		}
		at := 0
		for _, part := range []string{"What was seen.", "What it means.", "What not to do.", "How to look further.", "How to resolve it.", "How to tell that it is resolved."} {
			next := strings.Index(text[at:], "\n\n**"+part+"**")
			if next < 0 {
				t.Errorf("%s: %q is missing, or not in its place", topic, part)
				continue
			}
			at += next
		}
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(all, etcdverify.Topic(m[1])) {
				t.Errorf("%s: refers to %s, which is no topic", topic, m[1])
			}
		}
	}
	for _, topic := range []etcdverify.Topic{"", "nonsense", "../topic", "no-quorum.md"} {
		if text, ok := etcdverify.Runbook(topic); ok || text != "" {
			t.Errorf("%q has a text", topic)
		}
	}
}

// TestRunbookPage holds docs/runbook.md to the texts that the package carries.
func TestRunbookPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("# The runbook of etcd\n\nWhat to do about a finding of package `etcdverify`: the topic that an error names is a section here. `mkectl` prints the same text. Written by\n" +
		"`go test ./etcdverify -run TestRunbookPage -update` out of `etcdverify/runbook`; change it there.\n\n")
	for _, topic := range etcdverify.Topics() {
		b.WriteString("- [" + string(topic) + "](#" + string(topic) + ")\n")
	}
	for _, topic := range etcdverify.Topics() {
		text, _ := etcdverify.Runbook(topic)
		b.WriteString("\n<a id=\"" + string(topic) + "\"></a>\n\n#" + text)
	}
	const page = "../docs/runbook.md"
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Error("docs/runbook.md is not what the package says: run go test ./etcdverify -run TestRunbookPage -update and look at the difference")
	}
}
