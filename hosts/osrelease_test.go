package hosts

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestOSRelease reads os-release files of many distributions, and says of each
// whether it is supported.
func TestOSRelease(t *testing.T) {
	data, err := os.ReadFile("testdata/os-release.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(data), "\n= ")
	cases := strings.Split(text, "\n= ")
	if len(cases) < 30 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, c := range cases {
		head, body, _ := strings.Cut(c, "\n")
		w := strings.Split(head, " | ")
		if len(w) != 4 {
			t.Fatalf("%q has %d parts", head, len(w))
		}
		t.Run(w[0], func(t *testing.T) {
			o := parseOSRelease(block{lines: strings.Split(body, "\n"), status: Yes})
			if o.ID != w[1] || o.VersionID != w[2] {
				t.Errorf("%q %q, want %q %q", o.ID, o.VersionID, w[1], w[2])
			}
			found := findDistribution(o, DefaultBounds().OS)
			got := "none"
			if len(found) > 0 {
				got = string(found[0].Severity)
			}
			if got != w[3] {
				t.Errorf("%s (%v), want %s", got, found, w[3])
			}
		})
	}
}

func TestOSReleaseNames(t *testing.T) {
	o := parseOSRelease(block{lines: []string{`PRETTY_NAME="a \"b\" \$c \\ \d"`, `ID_LIKE="rhel centos"`}, status: Yes})
	if o.Name != `a "b" $c \ \d` || len(o.IDLike) != 2 {
		t.Errorf("%+v", o)
	}
	if o := parseOSRelease(block{lines: []string{"ID=ubuntu"}, status: Unknown}); o.ID != "" {
		t.Errorf("read from a file that could not be read: %+v", o)
	}
	found := findDistribution(OS{ID: "almalinux", VersionID: "9.6", IDLike: []string{"rhel"}}, DefaultBounds().OS)
	if len(found) != 1 || !strings.Contains(found[0].Got, "like rhel") {
		t.Errorf("%v", found)
	}
}

// FuzzShellValue: what is read is what a shell reads.
func FuzzShellValue(f *testing.F) {
	for _, s := range []string{`"a b"`, `'a"b'`, `a\ b`, `"\$x"`, `$x`, `a"b"'c'`, `"a`, `a # b`, `\`, `"\a"`, ``} {
		f.Add(s)
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		f.Skip("no sh on this machine to compare with")
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := shellValue(s)
		if !ok || strings.ContainsAny(s, "\n\r\x00~") || strings.ContainsFunc(s, func(r rune) bool { return r >= 0x7f || r < ' ' }) {
			return
		}
		x := exec.Command(sh, "-fc", "v="+s+"\nprintf %s \"$v\"")
		x.Dir, x.Env = t.TempDir(), []string{"PATH=/nonexistent"} // whatever it is, it runs nothing
		out, err := x.Output()
		if err != nil || string(out) != got {
			t.Errorf("%q: %q, a shell says %q, %v", s, got, out, err)
		}
	})
}
