package shell

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// awkward holds arguments that some shell takes apart.
var awkward = []string{
	"", " ", "a", "a b", "'", `"`, `\`, `\\`, `\'`, "$HOME", "`id`", "$(id)", "!", "!!", "!x", "a\nb", "\n", "a\n\n", "*", "?", "[a]", "~", "~root",
	"#", "a#b", "-", "--", "-n", "%", "%s", `%b\0101`, `\0101`, `\n`, "{a,b}", "a=b", "^", "|", "&", ";", "<", ">", "(", ")", "é", "日本", "\xff\xfe",
	"\x01\x7f", "\t", "\r", "it's", `say "hi"`, `'"'"'`, `'\''`, strings.Repeat("x'y\n", 3000), strings.Repeat("plain ", 2000),
}

func TestQuoteRoundTrip(t *testing.T) {
	out, err := exec.Command("/bin/sh", "-c", `printf '%s\0' `+Join(awkward)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); !slices.Equal(got, awkward) {
		t.Errorf("sh got %q\nwant %q", got, awkward)
	}
	words, err := Split(Join(awkward))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(words, awkward) {
		t.Errorf("Split(Join) = %q\nwant %q", words, awkward)
	}
}

// Whatever the login shell is, the program gets the arguments as they are.
func TestWireLoginShells(t *testing.T) {
	for _, name := range []string{"sh", "bash", "dash", "ksh", "zsh", "fish", "csh", "tcsh", "nu"} {
		t.Run(name, func(t *testing.T) {
			sh, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("%s is not installed, so this login shell is not tried", name)
			}
			args := append([]string{"printf", `%s\0`}, awkward...)
			cmd := exec.Command(sh, "-c", Wire(Request{Args: args, Mark: "MARK-1"}))
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, &stderr)
			}
			rest, ok := strings.CutPrefix(string(out), "MARK-1")
			if !ok {
				t.Fatalf("no mark in %q", out)
			}
			if got := strings.Split(strings.TrimSuffix(rest, "\x00"), "\x00"); !slices.Equal(got, awkward) {
				t.Errorf("the program got %q\nwant %q", got, awkward)
			}
		})
	}
}

func TestParse(t *testing.T) {
	for _, r := range []Request{
		{Args: []string{"uname", "-r"}, Mark: "m-1"},
		{Args: awkward[1:], Mark: "m-1"},
		{Args: []string{"uname"}, Mark: "m-1", Sudo: true},
		{Args: []string{"uname"}, Mark: "m-1", Sudo: true, Prompt: "ask-1"},
		{Args: []string{"x", asRoot, elseSudo, " -- ", ";exec "}, Mark: "m", Sudo: true, Prompt: "p q"},
		{Args: []string{"x", ";exec ", ";"}, Mark: "m"},
	} {
		got, ok := Parse(Wire(r))
		if !ok || !slices.Equal(got.Args, r.Args) || got.Sudo != r.Sudo || got.Prompt != r.Prompt || got.Mark != r.Mark {
			t.Errorf("Parse(Wire(%+v)) = %+v, %v", r, got, ok)
		}
	}
	for _, s := range []string{"", "uname", "exec /bin/sh -c 'id'", `exec /bin/sh -c 'eval "$(printf %b "$@")"' sh '\9'`} {
		if r, ok := Parse(s); ok {
			t.Errorf("Parse(%q) = %+v, want it refused", s, r)
		}
	}
}

func FuzzWire(f *testing.F) {
	for _, a := range awkward {
		f.Add(a, "second", false)
		f.Add("first", a, true)
	}
	f.Fuzz(func(t *testing.T, a, b string, sudo bool) {
		if strings.ContainsRune(a+b, 0) {
			return // no program can be given a NUL
		}
		r := Request{Args: []string{"printf", `%s\0%s\0`, a, b}, Mark: "M-1"}
		if len(Wire(r)) < MaxWire {
			out, err := exec.Command("/bin/sh", "-c", Wire(r)).Output()
			if err != nil {
				t.Fatal(err)
			}
			if want := "M-1" + a + "\x00" + b + "\x00"; string(out) != want {
				t.Fatalf("got %q, want %q", out, want)
			}
		}
		r.Sudo = sudo
		got, ok := Parse(Wire(r))
		if !ok || !slices.Equal(got.Args, r.Args) || got.Sudo != sudo {
			t.Fatalf("Parse(Wire(%+v)) = %+v, %v", r, got, ok)
		}
	})
}

func FuzzSplit(f *testing.F) {
	f.Add(`a "b c" 'd'\''e'`)
	f.Fuzz(func(t *testing.T, line string) {
		words, err := Split(line)
		if err != nil {
			return
		}
		again, err := Split(Join(words))
		if err != nil || !slices.Equal(again, words) {
			t.Fatalf("Split(Join(%q)) = %q, %v", words, again, err)
		}
	})
}
