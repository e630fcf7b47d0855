// Package tools builds the programs that a sandbox runs, and keeps them in a cache outside the
// clone: a machine builds them once.
package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Builder builds and caches. Its zero value uses the user's cache directory and is silent.
type Builder struct {
	Cache string            // directory; empty means MKESDK_CACHE, else the user's cache directory
	Say   func(line string) // told what happens, if it takes time; may be nil
	Self  string            // this program's file, where this program is the sandbox's binary
}

func (b Builder) say(format string, args ...any) {
	if b.Say != nil {
		b.Say(fmt.Sprintf(format, args...))
	}
}

// dir is the cache's directory.
func (b Builder) dir() (string, error) {
	dir := b.Cache
	if dir == "" {
		dir = os.Getenv("MKESDK_CACHE")
	}
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("no cache directory for built programs (set MKESDK_CACHE): %w", err)
		}
		dir = filepath.Join(base, "mkesdk")
	}
	return filepath.Abs(dir)
}

// locked runs do while no other process of this machine does the same for name. It waits for one
// that does, and says so.
func (b Builder) locked(ctx context.Context, name string, do func(dir string) error) error {
	base, err := b.dir()
	if err != nil {
		return err
	}
	dir := filepath.Join(base, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cache of built programs: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("cache of built programs: %w", err)
	}
	defer f.Close() // lets go of the lock
	said := false
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return do(dir)
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return fmt.Errorf("cache of built programs: lock: %w", err)
		}
		if !said {
			b.say("another process is building the same; waiting for it")
			said = true
		}
		t := time.NewTimer(100 * time.Millisecond)
		select {
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		case <-t.C:
		}
	}
}

// keyOf is a short name for everything that decides what a build gives.
func keyOf(files []string, flags ...string) (string, error) {
	h := sha256.New()
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n", filepath.Base(name), len(data))
		h.Write(data)
	}
	for _, f := range flags {
		fmt.Fprintf(h, "%q\n", f)
	}
	return hex.EncodeToString(h.Sum(nil))[:24], nil
}

// keep puts a built file into dir under prefix and the start of its hash, and returns that path.
// A process that runs an older one keeps it, and never is there half a file under that name.
func keep(built, dir, prefix string) (string, error) {
	in, err := os.Open(built)
	if err != nil {
		return "", err
	}
	defer in.Close()
	h := sha256.New()
	if _, err := io.Copy(h, in); err != nil {
		return "", err
	}
	target := filepath.Join(dir, prefix+"-"+hex.EncodeToString(h.Sum(nil))[:16])
	if _, err := os.Stat(target); err == nil {
		now := time.Now()
		return target, os.Chtimes(target, now, now) // it is in use; see prune
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	out, err := os.CreateTemp(dir, ".part-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(out.Name())
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Chmod(0o755)
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(out.Name(), target)
	}
	if err != nil {
		return "", fmt.Errorf("cache of built programs: %w", err)
	}
	return target, prune(dir, prefix)
}

// prune removes all but the newest few builds of a program that changes with every edit.
func prune(dir, prefix string) error {
	const kept = 4
	old, err := filepath.Glob(filepath.Join(dir, prefix+"-*"))
	if err != nil {
		return err
	}
	for len(old) > kept {
		oldest := 0
		for i := range old {
			if modTime(old[i]).Before(modTime(old[oldest])) {
				oldest = i
			}
		}
		if err := os.Remove(old[oldest]); err != nil {
			return err
		}
		old = append(old[:oldest], old[oldest+1:]...)
	}
	return nil
}

func modTime(name string) time.Time {
	st, err := os.Stat(name)
	if err != nil {
		return time.Time{}
	}
	return st.ModTime()
}
