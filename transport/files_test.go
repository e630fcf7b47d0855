package transport_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mkesdk/mkesdk/transport"
	"github.com/mkesdk/mkesdk/transport/transporttest"
)

// temporaries lists what WriteFile has left in a directory.
func temporaries(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, ".*.mkesdk.*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestWriteFileModes(t *testing.T) {
	c := dial(t, serve(t, &transporttest.Server{}))
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	for mode, want := range map[fs.FileMode]fs.FileMode{
		0: 0o600, 0o644: 0o644, 0o755 | fs.ModeSetuid: 0o755 | fs.ModeSetuid, 0o000 | fs.ModeSticky: fs.ModeSticky, 0o440: 0o440,
	} {
		name := filepath.Join(t.TempDir(), "f")
		seen := fs.FileMode(0o600)
		r := readerFunc(func(p []byte) (int, error) {
			for _, temp := range temporaries(t, filepath.Dir(name)) {
				if info, err := os.Stat(temp); err == nil {
					seen = info.Mode().Perm()
				}
			}
			return copy(p, "x"), io.EOF
		})
		if err := transport.WriteFile(t.Context(), c, name, r, transport.FileOptions{Mode: mode}); err != nil {
			t.Errorf("mode %v: %v", mode, err)
			continue
		}
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("mode %v became %v, %v; want %v", mode, info.Mode(), err, want)
		}
		if seen != 0o600 {
			t.Errorf("mode %v: the temporary file was %v", mode, seen)
		}
		if left := temporaries(t, filepath.Dir(name)); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	}
	for _, o := range []transport.FileOptions{{Mode: fs.ModeDir | 0o755}, {Owner: "-R"}, {Owner: "a b"}, {SHA256: "abc"}, {Size: -1}} {
		if err := transport.WriteFile(t.Context(), c, filepath.Join(t.TempDir(), "f"), strings.NewReader(""), o); err == nil {
			t.Errorf("%+v worked", o)
		}
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestWriteFileOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("not run as root, so a file cannot be given away")
	}
	c := dial(t, serve(t, &transporttest.Server{}))
	name := filepath.Join(t.TempDir(), "f")
	if err := transport.WriteFile(t.Context(), c, name, strings.NewReader("x"), transport.FileOptions{Owner: "1:2"}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); st.Uid != 1 || st.Gid != 2 {
		t.Errorf("the owner is %d:%d, want 1:2", st.Uid, st.Gid)
	}
	err = transport.WriteFile(t.Context(), c, name, strings.NewReader("y"), transport.FileOptions{Owner: "no-such-user"})
	if exit, ok := errors.AsType[*transport.ExitError](err); !ok || !strings.Contains(exit.Stderr, "no-such-user") {
		t.Errorf("an owner that is none: %v", err)
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != "x" {
		t.Errorf("the file is %q, %v", got, err)
	}
}

func TestWriteFilePlaces(t *testing.T) {
	c := dial(t, serve(t, &transporttest.Server{}))
	dir := t.TempDir()
	err := transport.WriteFile(t.Context(), c, dir+"/none/f", strings.NewReader("x"), transport.FileOptions{})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such directory: %v", err)
	}
	err = transport.WriteFile(t.Context(), c, dir, strings.NewReader("x"), transport.FileOptions{})
	if err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a directory: %v", err)
	}
	if err := os.Symlink("/dev/null", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := transport.WriteFile(t.Context(), c, dir+"/link", strings.NewReader("x"), transport.FileOptions{}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(dir + "/link"); err != nil || !info.Mode().IsRegular() {
		t.Errorf("a symbolic link became %v, %v; want a file", info.Mode(), err)
	}
	if _, err := transport.ReadFile(t.Context(), c, dir); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read a directory: %v", err)
	}
}

func TestWriteFileVerified(t *testing.T) {
	content := strings.Repeat("0123456789abcdef", 1<<17)
	sum := sha256.Sum256([]byte(content))
	digest := hex.EncodeToString(sum[:])
	programs := t.TempDir()
	for _, name := range []string{
		"cat", "chmod", "chown", "dd", "id", "kill", "mv", "rm", "sha256sum", "sync", "tail", "wc", "openssl",
	} {
		if path, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(path, filepath.Join(programs, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := dial(t, serve(t, &transporttest.Server{Env: []string{"PATH=" + programs}}))
	name := filepath.Join(t.TempDir(), "f")
	write := func(o transport.FileOptions) error {
		return transport.WriteFile(t.Context(), c, name, strings.NewReader(content), o)
	}
	for _, gone := range []string{"", "openssl", "sha256sum"} {
		if gone != "" {
			_ = os.Remove(filepath.Join(programs, gone)) // may not have been there
		}
		for _, want := range []string{"", digest, strings.ToUpper(digest)} {
			err := write(transport.FileOptions{SHA256: want})
			if gone == "sha256sum" && want != "" {
				if err == nil || !strings.Contains(err.Error(), "neither openssl nor sha256sum") {
					t.Errorf("with nothing to compute a digest: %v", err)
				}
				continue
			}
			if err != nil {
				t.Errorf("without %q, SHA256 %q: %v", gone, want, err)
			}
		}
	}
	// A disk that does not hold what it was given.
	if err := os.WriteFile(filepath.Join(programs, "sha256sum"), []byte("#!/bin/sh\necho 00 -\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := write(transport.FileOptions{Mode: 0o777}); err == nil || !strings.Contains(err.Error(), digest) {
		t.Errorf("content that is another on the disk: %v", err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode() == 0o777 {
		t.Errorf("the damaged file took the name: %v, %v", info.Mode(), err)
	}
}

// An upload that is cut off changes nothing, and the next one clears up after it.
func TestWriteFileCutOff(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &transporttest.Server{}
	cfg := serve(t, s)
	for _, way := range []string{"context", "connection"} {
		c := dial(t, cfg)
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		err := transport.WriteFile(ctx, c, name, readerFunc(func(p []byte) (int, error) {
			if n++; n < 20 {
				return len(p), nil
			}
			for range p { // until the host has some of it
				if len(temporaries(t, dir)) > 0 {
					break
				}
			}
			if way == "context" {
				cancel()
			} else {
				s.Disconnect()
			}
			<-ctx.Done()
			return 0, ctx.Err()
		}), transport.FileOptions{})
		cancel()
		if _, ran := errors.AsType[*transport.ExitError](err); err == nil || ran && way == "context" {
			t.Errorf("cut off by its %s: %v", way, err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != "old" {
			t.Errorf("after it was cut off by its %s the file is %q, %v", way, got, err)
		}
		_ = c.Close()
	}
	// What a killed one leaves, and what one that lives has.
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, ".f.mkesdk."+strconv.Itoa(dead.Process.Pid)+"-x")
	mine := filepath.Join(dir, ".f.mkesdk."+strconv.Itoa(os.Getpid())+"-x")
	other := filepath.Join(dir, ".g.mkesdk."+strconv.Itoa(dead.Process.Pid)+"-x")
	for _, f := range []string{left, mine, other} {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := transport.WriteFile(t.Context(), dial(t, cfg), name, strings.NewReader("new"), transport.FileOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != "new" {
		t.Errorf("the file is %q, %v", got, err)
	}
	if got := temporaries(t, dir); len(got) != 2 || got[0] != mine && got[1] != mine {
		t.Errorf("left are %q, want only the one that is being written and the one of another file", got)
	}
}

// A reader of the file sees the old content or the new.
func TestWriteFileAtomic(t *testing.T) {
	c := dial(t, serve(t, &transporttest.Server{}))
	name := filepath.Join(t.TempDir(), "f")
	versions := []string{strings.Repeat("a", 300_000), strings.Repeat("b", 200_000)}
	if err := os.WriteFile(name, []byte(versions[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 6 {
			if err := transport.WriteFile(t.Context(), c, name, strings.NewReader(versions[(i+1)%2]), transport.FileOptions{}); err != nil {
				t.Error(err)
			}
		}
	}()
	for {
		select {
		case <-done:
			return
		default:
		}
		got, err := os.ReadFile(name)
		if err != nil || string(got) != versions[0] && string(got) != versions[1] {
			t.Fatalf("a reader saw %d bytes, %v", len(got), err)
		}
	}
}

// Closing what Open returned ends the transfer.
func TestOpenClose(t *testing.T) {
	c := dial(t, serve(t, &transporttest.Server{}))
	r, err := transport.Open(t.Context(), c, "/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, 100_000)); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := r.Read(make([]byte, 1)); err == nil {
		t.Error("it can be read after it is closed")
	}
	// A command that was cut off is no file that has ended.
	ctx, cancel := context.WithCancel(t.Context())
	if r, err = transport.Open(ctx, c, "/dev/zero"); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, context.Canceled) {
		t.Errorf("cut off: %v", err)
	}
}
