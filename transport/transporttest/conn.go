package transporttest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/transport"
)

// prompt is how soon an operation returns when it is cut off, with some room for a busy machine.
const prompt = 500 * time.Millisecond

// TestConn checks that a Conn keeps the promises of [transport.Conn]. Each call of dial
// makes a connection to a host on which /bin/sh, cat, printf, sleep and the like run,
// where root can be become, and whose loopback is this machine's, so that what the test
// listens on can be dialed. The directory is an absolute one on the host, where files may
// be made.
func TestConn(t *testing.T, dir string, dial func(t *testing.T) transport.Conn) {
	for _, test := range []struct {
		name string
		f    func(t *testing.T, c transport.Conn)
	}{
		{"arguments", testArguments},
		{"streams", testStreams},
		{"much", testMuch},
		{"exit", testExit},
		{"secrets", testSecrets},
		{"refused", testRefused},
		{"sudo", testSudo},
		{"context", testContext},
		{"endless input", testEndlessInput},
		{"broken streams", testBrokenStreams},
		{"many", testMany},
		{"dial", testDial},
		{"dial fails", testDialFails},
		{"files", func(t *testing.T, c transport.Conn) { testFiles(t, c, dir) }},
		{"files stay whole", func(t *testing.T, c transport.Conn) { testFilesStayWhole(t, c, dir) }},
		{"close", testClose},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := dial(t)
			defer func() {
				if err := c.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}()
			test.f(t, c)
		})
	}
}

// sh is a command of a script.
func sh(script string, args ...string) transport.Command {
	return transport.Command{Args: append([]string{"/bin/sh", "-c", script, "sh"}, args...)}
}

// ran reports whether err says that a command ran, and how it ended.
func ran(err error) (*transport.ExitError, bool) { return errors.AsType[*transport.ExitError](err) }

func testArguments(t *testing.T, c transport.Conn) {
	args := []string{
		"", " ", "a b", "'", `"`, `\`, `\\'`, "$HOME", "`id`", "$(id)", "!!", "a\nb\n", "*", "?", "~", "#", "-n", "--", "%s", `\0101`, "a=b", "{a,b}", "^",
		"|&;<>()", "é日本", "\xff\x01\x7f", "\t\r", strings.Repeat("long 'x'\n", 500),
	}
	cmd := transport.Command{Args: append([]string{"printf", `%s\0`}, args...)}
	out, err := transport.Output(t.Context(), c, cmd)
	if want := strings.Join(args, "\x00") + "\x00"; err != nil || out != want {
		t.Errorf("the program got %q, %v\nwant %q", out, err, want)
	}
}

func testStreams(t *testing.T, c transport.Conn) {
	in := "some\x00bytes \xff\r\nand no end of line"
	var stdout, stderr bytes.Buffer
	cmd := sh("cat; echo complaint >&2")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &stdout, &stderr
	if err := c.Run(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
	if stdout.String() != in || stderr.String() != "complaint\n" {
		t.Errorf("stdout %q, stderr %q; want %q and a complaint", &stdout, &stderr, in)
	}
	if out, err := transport.Output(t.Context(), c, transport.Command{Args: []string{"cat"}}); err != nil || out != "" {
		t.Errorf("without Stdin cat prints %q, %v", out, err)
	}
	if err := c.Run(t.Context(), sh("echo nobody; echo cares >&2")); err != nil {
		t.Errorf("without Stdout and Stderr: %v", err)
	}
	if out, err := transport.Output(t.Context(), c, sh(`printf 'a\n\n'`)); err != nil || out != "a\n" {
		t.Errorf("Output = %q, %v; want one newline less", out, err)
	}
}

func testMuch(t *testing.T, c transport.Conn) {
	much := bytes.Repeat([]byte("0123456789abcdef"), 512<<10)
	var back bytes.Buffer
	if err := c.Run(t.Context(), transport.Command{Args: []string{"cat"}, Stdin: bytes.NewReader(much), Stdout: &back}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(back.Bytes(), much) {
		t.Errorf("%d bytes came back of %d, or others", back.Len(), len(much))
	}
}

func testExit(t *testing.T, c transport.Conn) {
	cmd := sh("echo why >&2; exit 7")
	exit, ok := ran(c.Run(t.Context(), cmd))
	if !ok || exit.Status != 7 || exit.Host != c.String() || exit.Command != cmd.String() || exit.Stderr != "why\n" || exit.Signal != "" {
		t.Errorf("exit 7: %#v", exit)
	}
	var stderr bytes.Buffer
	cmd = sh(`i=0; while [ $i -lt 2000 ]; do echo "line $i of many"; i=$((i+1)); done >&2; echo the last >&2; exit 1`)
	cmd.Stderr = &stderr
	exit, ok = ran(c.Run(t.Context(), cmd))
	if !ok || !strings.HasSuffix(exit.Stderr, "the last\n") || len(exit.Stderr) > 8<<10 {
		t.Errorf("of much standard error, %d bytes are kept: want the tail", len(exit.Stderr))
	}
	if n := strings.Count(stderr.String(), "\n"); n != 2001 {
		t.Errorf("Stderr got %d lines, want 2001", n)
	}
	exit, ok = ran(c.Run(t.Context(), transport.Command{Args: []string{"mkesdk-no-such-program"}}))
	if !ok || exit.Status != 127 {
		t.Errorf("no such program: %#v, want exit status 127", exit)
	}
	exit, ok = ran(c.Run(t.Context(), sh("kill -KILL $$")))
	if !ok || exit.Signal != "KILL" || exit.Status != -1 {
		t.Errorf("killed: %#v, want the signal KILL", exit)
	}
}

func testSecrets(t *testing.T, c transport.Conn) {
	const secret = "hunter2 is 'secret'"
	cmd := sh(`echo "$1" >&2; exit 1`, secret)
	cmd.Secrets = []string{secret}
	err := c.Run(t.Context(), cmd)
	exit, ok := ran(err)
	if !ok {
		t.Fatalf("want exit status 1, got %v", err)
	}
	for what, text := range map[string]string{"error": err.Error(), "command": exit.Command, "standard error": exit.Stderr, "String": cmd.String()} {
		if strings.Contains(text, "hunter2") {
			t.Errorf("the secret shows in %s: %s", what, text)
		}
	}
}

func testRefused(t *testing.T, c transport.Conn) {
	for name, cmd := range map[string]transport.Command{
		"no arguments":   {},
		"no program":     {Args: []string{"", "x"}},
		"a NUL":          {Args: []string{"printf", "a\x00b"}},
		"a NUL, as root": {Args: []string{"printf", "a\x00b"}, Sudo: true},
	} {
		err := c.Run(t.Context(), cmd)
		if _, ok := ran(err); ok || err == nil {
			t.Errorf("%s: %v; want an error that is no ExitError", name, err)
		}
	}
}

func testSudo(t *testing.T, c transport.Conn) {
	cmd := sh("id -u; cat")
	cmd.Sudo, cmd.Stdin = true, strings.NewReader("input\n")
	if out, err := transport.Output(t.Context(), c, cmd); err != nil || out != "0\ninput" {
		t.Errorf("as root: %q, %v; want 0 and the input", out, err)
	}
	cmd = sh("exit 9")
	cmd.Sudo = true
	if exit, ok := ran(c.Run(t.Context(), cmd)); !ok || exit.Status != 9 {
		t.Errorf("as root: %#v, want exit status 9", exit)
	}
}

func testContext(t *testing.T, c transport.Conn) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	err := c.Run(over, sh("exit 1"))
	if _, ok := ran(err); ok || !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is over: %v", err)
	}
	why := errors.New("somebody said so")
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	cmd := sh("echo running; sleep 60; echo too late")
	r, w := io.Pipe()
	var cut time.Time
	go func() {
		_, _ = io.ReadFull(r, make([]byte, len("running\n")))
		cut = time.Now()
		stop(why)
	}()
	cmd.Stdout = w
	err = c.Run(ctx, cmd)
	if took := time.Since(cut); took > prompt {
		t.Errorf("it returned %v after its context ended", took)
	}
	if _, ok := ran(err); ok || !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
		t.Errorf("cut off: %v; want it to match context.Canceled and its cause", err)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	defer r.Close() // a pipe
	if err := c.Run(t.Context(), sh("exit 0")); err != nil {
		t.Errorf("the next command: %v", err)
	}
}

// testEndlessInput checks that a command that ends is not waited for because of its input.
func testEndlessInput(t *testing.T, c transport.Conn) {
	r, w := io.Pipe()
	defer w.Close() // a pipe
	cmd := sh("exit 4")
	cmd.Stdin = r
	done := make(chan error, 1)
	go func() { done <- c.Run(t.Context(), cmd) }()
	select {
	case err := <-done:
		if exit, ok := ran(err); !ok || exit.Status != 4 {
			t.Errorf("got %v, want exit status 4", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it waits for input that the command does not")
	}
}

// errReader fails after some bytes.
type errReader struct {
	first io.Reader
	err   error
}

func (r errReader) Read(p []byte) (int, error) {
	n, err := r.first.Read(p)
	if errors.Is(err, io.EOF) {
		err = r.err
	}
	return n, err
}

// errWriter fails.
type errWriter struct{ err error }

func (w errWriter) Write([]byte) (int, error) { return 0, w.err }

func testBrokenStreams(t *testing.T, c transport.Conn) {
	bad := errors.New("the disk is full")
	cmd := sh("cat; sleep 60")
	cmd.Stdin = errReader{strings.NewReader("some"), bad}
	if err := c.Run(t.Context(), cmd); !errors.Is(err, bad) {
		t.Errorf("Stdin fails: %v", err)
	}
	cmd = sh("echo out; echo err >&2; sleep 60")
	cmd.Stdout = errWriter{bad}
	if err := c.Run(t.Context(), cmd); !errors.Is(err, bad) {
		t.Errorf("Stdout fails: %v", err)
	}
	cmd.Stdout, cmd.Stderr = nil, errWriter{bad}
	if err := c.Run(t.Context(), cmd); !errors.Is(err, bad) {
		t.Errorf("Stderr fails: %v", err)
	}
}
