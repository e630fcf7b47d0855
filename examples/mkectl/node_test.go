package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/mke"
)

// A recorder is an SDK that keeps what it was asked.
type recorder struct {
	fake
	to   mke.ConnectOptions
	opts mke.Options
	left time.Duration // until the deadline of the context
}

func (r *recorder) addNodes(ctx context.Context, to mke.ConnectOptions, o mke.Options) (mke.Result, error) {
	r.to, r.opts = to, o
	if deadline, ok := ctx.Deadline(); ok {
		r.left = time.Until(deadline)
	}
	return r.fake.addNodes(ctx, to, o)
}

// TestOptions types flags and looks at what the SDK is asked.
func TestOptions(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	key := filepath.Join(dir, "key.pem")
	for name, data := range map[string]string{
		key: "", "kubeconfig": "{}",
		"hosts.yaml": "hosts:\n  - role: worker\n    ssh: {address: 10.0.0.21}\n",
		"other.yaml": "hosts:\n  - role: worker\n    ssh: {address: 10.0.0.22}\n",
	} {
		if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args  string
		check func(*recorder) bool
	}{
		{"", func(r *recorder) bool {
			o := r.opts
			return o.Role == hosts.Worker && o.Concurrency == 30 && o.Timeouts == mke.Timeouts{Facts: 5 * time.Minute, Readiness: 10 * time.Minute} &&
				o.Lease == mke.Lease{TTL: time.Minute, Renew: 20 * time.Second} && len(o.SkipPreflight) == 0 &&
				o.Hosts[0].SSH.Address == "10.0.0.21" && o.Stop != nil && o.Logger != nil && r.left > 59*time.Minute && r.left <= time.Hour
		}},
		{"--hosts-path other.yaml", func(r *recorder) bool { return r.opts.Hosts[0].SSH.Address == "10.0.0.22" }},
		{"--concurrency 0", func(r *recorder) bool { return r.opts.Concurrency < 0 }},
		{"--concurrency 3", func(r *recorder) bool { return r.opts.Concurrency == 3 }},
		{"--timeout-minutes 20", func(r *recorder) bool { return r.left > 19*time.Minute && r.left <= 20*time.Minute }},
		{"--readiness-timeout-minutes 5", func(r *recorder) bool { return r.opts.Timeouts.Readiness == 5*time.Minute }},
		{"--collect-facts-timeout 90s", func(r *recorder) bool { return r.opts.Timeouts.Facts == 90*time.Second }},
		{"--lease-ttl 2m --lease-renew-interval 30s --lease-adopt-stale", func(r *recorder) bool {
			return r.opts.Lease == mke.Lease{TTL: 2 * time.Minute, Renew: 30 * time.Second, AdoptStale: true}
		}},
		{"--skip-preflight os,memory --skip-preflight cpu", func(r *recorder) bool {
			return slices.Equal(r.opts.SkipPreflight, []string{"os", "memory", "cpu"})
		}},
		{"--ssh-key ~/key.pem", func(r *recorder) bool { return r.to.SSH.(*mke.SSH).KeyFile == key }},
		{"--bastion-ssh-key=~/key.pem", func(r *recorder) bool { return r.to.SSH.(*mke.SSH).BastionKeyFile == key }},
	} {
		t.Run(c.args, func(t *testing.T) {
			var out bytes.Buffer
			r := &recorder{fake: "done"}
			a := &app{stdin: os.Stdin, stdout: &out, stderr: &out, getenv: func(string) string { return "" }, sdk: r}
			args := append([]string{"node", "add", "--kubeconfig", "kubeconfig"}, strings.Fields(c.args)...)
			if code := a.run(t.Context(), args); code != exitDone {
				t.Fatalf("exit code %d:\n%s", code, out.String())
			}
			if !c.check(r) {
				t.Errorf("the SDK was asked for %+v of %+v, with %s left", r.opts, r.to, r.left)
			}
		})
	}
}

// TestNoTerminal says what to do where nobody can be asked.
func TestNoTerminal(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	var said bytes.Buffer
	s := &secrets{in: in, out: aboveWriter{newPlain(&said), &said}}
	if _, err := s.sudo(t.Context()); !errors.Is(err, errNoTerminal) || !strings.Contains(err.Error(), "MKE_SUDO_PASSWORD") {
		t.Errorf("sudo: %v", err)
	}
	if _, err := s.passphrase(t.Context(), "/k.pem"); !errors.Is(err, errNoTerminal) || !strings.Contains(err.Error(), "/k.pem") {
		t.Errorf("passphrase: %v", err)
	}
	s.env = "from the environment"
	if p, err := s.sudo(t.Context()); p != s.env || err != nil {
		t.Errorf("sudo: %q, %v", p, err)
	}
	if said.Len() > 0 {
		t.Errorf("it said %q", said.String())
	}
}
