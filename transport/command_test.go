package transport

import (
	"bytes"
	"strings"
	"testing"
)

func TestCommandString(t *testing.T) {
	script := "# mkesdk: facts\n" + strings.Repeat("x", 2000)
	for _, test := range []struct {
		cmd  Command
		want string
	}{
		{Command{Args: []string{"uname", "-r"}}, "uname -r"},
		{Command{Args: []string{"k0s", "stop"}, Sudo: true}, "sudo k0s stop"},
		{Command{Args: []string{"echo", "a b", "$x", ""}}, `echo "a b" '$x' ""`},
		{Command{Args: []string{"sh", "-c", script, "sh", "arg"}}, "sh -c <facts, 2016 bytes> sh arg"},
		{Command{Args: []string{"sh", "-c", "set -e\nfalse\n"}}, "sh -c \"set -e\"…<13 bytes>"},
		{Command{Args: []string{"echo", strings.Repeat("é", 200)}}, "echo \"" + strings.Repeat("é", 40) + "\"…<400 bytes>"},
		{Command{Args: []string{"login", "hunter2", "x hunter2'y"}, Secrets: []string{"hunter2"}}, `login ****** "x ******'y"`},
		{Command{Args: []string{"a", "bc", "d"}, Secrets: []string{"a bc"}}, "****** d"},
		{Command{Args: []string{"abcabcd"}, Secrets: []string{"abca", "bcd", ""}}, "******"},
		{Command{}, ""},
	} {
		if got := test.cmd.String(); got != test.want {
			t.Errorf("String() = %s\nwant %s", got, test.want)
		}
	}
}

func FuzzMask(f *testing.F) {
	f.Add("password", "pass", "login with password, pass or passpassword")
	f.Add("aa", "aaa", "aaaaaaaa")
	f.Add("line one\nline two", "x", "line one and line two")
	f.Fuzz(func(t *testing.T, a, b, text string) {
		shown := newMask([]string{a, b}).apply(text)
		cmd := Command{Args: []string{"x", text, text}, Secrets: []string{a, b}}.String()
		for _, s := range []string{a, b} {
			if s == "" || strings.Contains(s, "*") {
				continue // what the mask itself is made of
			}
			if strings.Contains(shown, s) {
				t.Fatalf("%q shows in %q", s, shown)
			}
			if len(s) > 12 && strings.Contains(cmd, s) {
				t.Fatalf("%q shows in %q", s, cmd)
			}
		}
	})
}

// The tail of an output shows no part of a secret that its beginning cuts.
func FuzzTail(f *testing.F) {
	f.Add("secret-secret-secret", 4090)
	f.Add("ab", 5000)
	f.Fuzz(func(t *testing.T, secret string, before int) {
		if len(secret) < 4 || len(secret) > 1000 || before < 0 || before > 20000 || strings.ContainsAny(secret, ".*…x\n ") {
			return
		}
		o := &output{mark: "MARK", mask: newMask([]string{secret}), started: func() {}}
		text := "MARK" + strings.Repeat(".", before) + secret + strings.Repeat("x", 4096+len(secret)/2) + "end"
		for len(text) > 0 {
			n := min(len(text), 1000)
			if err := o.take([]byte(text[:n])); err != nil {
				t.Fatal(err)
			}
			text = text[n:]
		}
		got := o.shown()
		if !strings.HasSuffix(got, "end") {
			t.Fatalf("the end is missing: %q", got)
		}
		if rest := strings.Trim(got, ".x…*"); rest != "end" && rest != "xend" && strings.Trim(strings.TrimSuffix(rest, "end"), "x") != "" {
			t.Fatalf("of the secret %q there is left %q", secret, rest)
		}
	})
}

// The mark is found however the stream is cut, and what comes before it is not handed on.
func FuzzOutput(f *testing.F) {
	f.Add("noise", "text", 3)
	f.Add("MAR", "K", 1)
	f.Fuzz(func(t *testing.T, noise, text string, cut int) {
		const mark = "MARK-1"
		if cut < 1 || cut > 100 || strings.Contains(noise+mark[:len(mark)-1], mark) {
			return
		}
		if i := strings.Index(noise+mark, mark); i != len(noise) {
			return
		}
		var b bytes.Buffer
		began := 0
		o := &output{mark: mark, w: &b, started: func() { began++ }}
		all := noise + mark + text
		for len(all) > 0 {
			n := min(len(all), cut)
			if err := o.take([]byte(all[:n])); err != nil {
				t.Fatal(err)
			}
			all = all[n:]
		}
		if b.String() != text || began != 1 {
			t.Fatalf("handed on %q, begun %d times; want %q", b.String(), began, text)
		}
	})
}

func TestSplitAddress(t *testing.T) {
	for _, test := range []struct {
		address string
		port    int
		host    string
		want    int // 0 for an error
	}{
		{"h1", 0, "h1", 22}, {"H1.example.COM", 0, "h1.example.com", 22}, {"h1", 2222, "h1", 2222}, {"h1:2222", 0, "h1", 2222}, {"h1:22", 22, "h1", 22},
		{"10.0.0.1", 0, "10.0.0.1", 22}, {"10.0.0.1:23", 0, "10.0.0.1", 23},
		{"fd00::1", 0, "fd00::1", 22}, {"FD00:0::1", 0, "fd00::1", 22}, {"[fd00::1]", 0, "fd00::1", 22}, {"[fd00::1]:22", 0, "fd00::1", 22},
		{"[fd00::1]:2222", 0, "fd00::1", 2222}, {"fe80::1%eth0", 0, "fe80::1%eth0", 22},
		{"", 0, "", 0}, {"h1:", 0, "", 0}, {"h1:x", 0, "", 0}, {"h1:0", 0, "", 0}, {"h1:70000", 0, "", 0}, {":22", 0, "", 0}, {"h1:22", 23, "", 0},
		{"h1", -1, "", 0}, {"h1", 65536, "", 0}, {"0.0.0.0", 0, "", 0}, {"::", 0, "", 0}, {"[::]:22", 0, "", 0}, {"user@h1", 0, "", 0}, {"-oProxy", 0, "", 0},
		{"a b", 0, "", 0}, {"ssh://h1", 0, "", 0}, {"[fd00::1", 0, "", 0}, {"1:2:3", 0, "", 0}, {"h1/", 0, "", 0},
	} {
		host, port, err := splitAddress(test.address, test.port)
		if (err == nil) != (test.want != 0) || err == nil && (host != test.host || port != test.want) {
			t.Errorf("splitAddress(%q, %d) = %q, %d, %v; want %q, %d", test.address, test.port, host, port, err, test.host, test.want)
		}
	}
}

func FuzzSplitAddress(f *testing.F) {
	f.Add("[fd00::1]:22", 0)
	f.Add("h1:2222", 2222)
	f.Fuzz(func(t *testing.T, address string, port int) {
		host, n, err := splitAddress(address, port)
		if err != nil {
			return
		}
		again, m, err := splitAddress(host, n)
		if err != nil || again != host || m != n {
			t.Fatalf("splitAddress(%q, %d) = %q, %d, which becomes %q, %d, %v", address, port, host, n, again, m, err)
		}
	})
}
