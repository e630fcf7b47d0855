package mkesdk_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/mke"
)

// TestREADMEProgram compiles the program of the README as it stands there.
func TestREADMEProgram(t *testing.T) {
	program := fenced(t, "go")
	lines := 0
	for line := range strings.Lines(program) {
		if strings.TrimSpace(line) != "" {
			lines++
		}
	}
	if lines > 30 {
		t.Errorf("the program of README.md has %d lines: what it has to say first belongs into the SDK", lines)
	}
	// The overlay puts it into the module without writing into the tree.
	file := filepath.Join(t.TempDir(), "main.go")
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, "readme", "main.go"): file}})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{file: []byte(program), overlay: replace} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("go", "list", "-export", "-overlay", overlay, "./readme").CombinedOutput(); err != nil { // compiles, without the time to link
		t.Errorf("the program of README.md does not compile: %v\n%s", err, out)
	}
	if out, err := exec.Command("gofmt", "-l", file).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("gofmt would change the program of README.md (%v)", err)
	}
}

// TestREADMESequence holds the table of stages to what runs.
func TestREADMESequence(t *testing.T) {
	_, table, ok := strings.Cut(readme(t), "<!-- mke.Sequence(mke.Add, hosts.Worker) -->")
	if !ok {
		t.Fatal("README.md has lost the mark of the table of stages")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	var got, want []string
	for _, row := range regexp.MustCompile("(?m)^\\| (\\d+) \\| `([a-z0-9-]+)` \\|").FindAllStringSubmatch(table, -1) {
		got = append(got, row[1]+" "+row[2])
	}
	for i, s := range mke.Sequence(mke.Add, hosts.Worker) {
		want = append(want, fmt.Sprint(i+1, " ", s))
	}
	if !slices.Equal(got, want) {
		t.Errorf("README.md has the stages\n%q\nwhat runs is\n%q", got, want)
	}
}

// TestREADMEMap wants every package that others can import in the map.
func TestREADMEMap(t *testing.T) {
	out, err := exec.Command("go", "list", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for path := range strings.FieldsSeq(string(out)) {
		name, ok := strings.CutPrefix(path, "github.com/mkesdk/mkesdk/")
		if ok && !strings.Contains(name, "internal") && !strings.Contains(readme(t), "\n| `"+name+"` |") {
			t.Errorf("README.md does not have %s in its map", name)
		}
	}
}

// TestREADMECommands makes sure that CI runs what the README tells people to.
func TestREADMECommands(t *testing.T) {
	ci, err := os.ReadFile(".ci/run")
	if err != nil {
		t.Fatal(err)
	}
	commands := fencedAll(t, "sh")
	if len(commands) != 2 {
		t.Errorf("README.md has %d commands for a fresh machine, want 2", len(commands))
	}
	for _, c := range commands {
		if !strings.Contains(string(ci), "\n"+c) {
			t.Errorf(".ci/run does not run what README.md tells people to:\n%s", c)
		}
	}
}

// TestLinks wants what the documentation links to in the tree.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^):#]+)(#[^)]*)?\)`)
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	decisions, err := filepath.Glob("docs/adr/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range slices.Concat([]string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}, pages, decisions) {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(data), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			}
		}
	}
}

// fenced returns the one block of the README in that language.
func fenced(t *testing.T, language string) string {
	t.Helper()
	blocks := fencedAll(t, language)
	if len(blocks) != 1 {
		t.Fatalf("README.md has %d blocks of %s, want one", len(blocks), language)
	}
	return blocks[0]
}

func fencedAll(t *testing.T, language string) (blocks []string) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(readme(t), -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

func readme(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
