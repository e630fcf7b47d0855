package tools

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestKeyChangesWithWhatDecidesABuild(t *testing.T) {
	file := filepath.Join(t.TempDir(), "go.sum")
	key := func(text string, flags ...string) string {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		k, err := keyOf([]string{file}, flags...)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	keys := map[string]bool{}
	for _, k := range []string{key("a"), key("b"), key("a", "-x"), key("a", "-x", "-y"), key("a", "-x -y")} {
		keys[k] = true
	}
	if len(keys) != 5 {
		t.Errorf("only %d different keys", len(keys))
	}
	if k := key("a", "-x"); !keys[k] {
		t.Errorf("the same gives another key, %s", k)
	}
}

func TestKeep(t *testing.T) {
	dir, built := t.TempDir(), filepath.Join(t.TempDir(), "built")
	put := func(text string) string {
		if err := os.WriteFile(built, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		path, err := keep(built, dir, "p")
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	first := put("one")
	if st, err := os.Stat(first); err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v: want a program", st, err)
	}
	if again := put("one"); again != first {
		t.Errorf("the same content is %s and %s", first, again)
	}
	for _, text := range []string{"two", "three", "four", "five", "six"} {
		last := put(text)
		if data, err := os.ReadFile(last); err != nil || string(data) != text {
			t.Errorf("%s holds %q, %v", last, data, err)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 4 {
		t.Errorf("%d files are kept, %v", len(left), err)
	}
}

func TestOneBuildsAtATime(t *testing.T) {
	var said sync.Map
	b := Builder{Cache: t.TempDir(), Say: func(line string) { said.Store(line, true) }}
	inside, leave := make(chan bool), make(chan bool)
	done := make(chan error, 1)
	go func() {
		done <- b.locked(context.Background(), "x", func(string) error { close(inside); <-leave; return nil })
	}()
	<-inside
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := b.locked(ctx, "x", func(string) error { t.Error("two build the same at once"); return nil })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a wait that was cut short: %v", err)
	}
	if _, ok := said.Load("another process is building the same; waiting for it"); !ok {
		t.Error("waiting is not said")
	}
	close(leave)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := b.locked(t.Context(), "x", func(string) error { return nil }); err != nil {
		t.Errorf("after the other one is done: %v", err)
	}
}

// A build that fails leaves nothing under the program's name, and says what the compiler said.
func TestFailedBuild(t *testing.T) {
	src := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module x\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() { nonsense }\n"} {
		if err := os.WriteFile(filepath.Join(src, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := Builder{Cache: t.TempDir()}
	_, err := b.current(t.Context(), src, "x")
	if err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("%v: want the compiler's words", err)
	}
	if left, _ := filepath.Glob(filepath.Join(b.Cache, "x", "x-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestWithoutGo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := (Builder{Cache: t.TempDir()}).Programs(t.Context()); !errors.Is(err, ErrNoGo) {
		t.Errorf("%v, want %v", err, ErrNoGo)
	}
}
