package mke

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/transport"
)

// progressEvery is how often moving bytes are reported.
const progressEvery = 500 * time.Millisecond

// stageK0s puts the k0s binary of the cluster onto every host that lacks it. It
// is pulled once, whatever the number of hosts, and streamed to all of them.
func stageK0s(ctx context.Context, r *run, on []*target) error {
	lacking, err := r.lackingBinary(ctx, on)
	if err != nil {
		return err
	}
	byArch := map[string][]*target{}
	for _, t := range lacking {
		byArch[t.facts.Arch] = append(byArch[t.facts.Arch], t)
	}
	var errs []error
	for arch, on := range byArch {
		errs = append(errs, r.stageArch(ctx, r.binaries[arch], on))
	}
	return errors.Join(errs...)
}

// lackingBinary returns the hosts that do not hold the binary yet, by digest.
func (r *run) lackingBinary(ctx context.Context, on []*target) (lacking []*target, err error) {
	var mu sync.Mutex
	err = r.forEach(ctx, on, func(t *target) error {
		if t.facts.K0s.Binary != hosts.No {
			out, err := transport.Output(ctx, t.conn, transport.Command{
				Args: []string{"sha256sum", t.k0s()}, Sudo: true, Effect: transport.EffectNone,
			})
			if _, failed := errors.AsType[*transport.ExitError](err); err != nil && !failed {
				return err
			}
			sum, _, _ := strings.Cut(out, " ")
			if err == nil && "sha256:"+sum == r.binaries[t.facts.Arch].Digest {
				r.progress(t, "%s is the cluster's already", t.k0s())
				return nil
			}
		}
		mu.Lock()
		defer mu.Unlock()
		lacking = append(lacking, t)
		return nil
	})
	return lacking, err
}

// stageArch pulls one binary into a temporary file and streams it to hosts.
func (r *run) stageArch(ctx context.Context, b Binary, on []*target) error {
	f, err := os.CreateTemp(r.opts.TempDir, "mkesdk-k0s-*")
	if err != nil {
		return fmt.Errorf("a temporary file for the k0s binary: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := r.pull(ctx, b, f); err != nil {
		return fmt.Errorf("pulling the k0s binary: %w", err)
	}
	return each(func(ctx context.Context, r *run, t *target) error {
		return r.place(ctx, t, b, f)
	})(ctx, r, on)
}

func (r *run) pull(ctx context.Context, b Binary, to io.Writer) error {
	from, err := b.Open(ctx)
	if err != nil {
		return err
	}
	defer from.Close()
	n, err := io.Copy(to, from)
	if err == nil && n != b.Size {
		err = fmt.Errorf("%d bytes came, the registry announced %d", n, b.Size)
	}
	return err
}

// place writes the binary next to its final name, makes sure on the host that it
// is the one and that it runs, and only then renames it into place: whoever runs k0s meanwhile
// has the old one or the new one.
func (r *run) place(ctx context.Context, t *target, b Binary, f *os.File) error {
	sum := strings.TrimPrefix(b.Digest, "sha256:")
	// One name for one binary: what a killed run left is overwritten, not added to.
	dir := path.Join(path.Dir(t.k0s()), ".mkesdk-"+sum[:min(12, len(sum))])
	staged := path.Join(dir, "k0s")
	if err := r.guard(ctx); err != nil {
		return err
	}
	if err := t.sudo(ctx, "mkdir", "-p", "-m", "0755", dir); err != nil {
		return err
	}
	next := time.Now()
	err := transport.WriteFile(ctx, t.conn, staged, io.NewSectionReader(f, 0, b.Size), transport.FileOptions{
		Mode: fs.FileMode(0o755), Size: b.Size, SHA256: sum,
		Progress: func(done int64) {
			if now := time.Now(); now.After(next) || done == b.Size {
				next = now.Add(progressEvery)
				ref := t.ref()
				r.emit(Event{Kind: Progress, Host: &ref, Message: "k0s binary", Bytes: done, Total: b.Size})
			}
		},
	})
	if err != nil {
		return fmt.Errorf("staging %s: %w", staged, err)
	}
	version, err := transport.Output(ctx, t.conn, transport.Command{
		Args: []string{staged, "version"}, Sudo: true, Effect: transport.EffectNone,
	})
	if err != nil {
		return fmt.Errorf("the staged k0s does not run (is %s mounted noexec?): %w", path.Dir(t.k0s()), err)
	}
	if version != r.k0sVersion {
		return fmt.Errorf("%w: the registry's k0s says it is %s, the cluster runs %s", ErrVersion, version, r.k0sVersion)
	}
	if err := t.sudo(ctx, "mv", "-f", staged, t.k0s()); err != nil {
		return err
	}
	if err := t.sudo(ctx, "rmdir", dir); err != nil {
		return err
	}
	r.did(t, "k0s binary placed")
	return nil
}

// k0s is the path of the k0s binary on the host.
func (t *target) k0s() string { return k0sPath(t.facts) }

// k0sPath is where a host's k0s binary is: in the directory of the running service, else
// where MKE puts it. Never found through PATH, which sudo may reset.
func k0sPath(f hosts.Facts) string {
	if f.K0s.Path != "" {
		return f.K0s.Path
	}
	return "/usr/local/bin/k0s"
}

// sudo runs a command on the host as root, for its effect.
func (t *target) sudo(ctx context.Context, args ...string) error {
	return t.conn.Run(ctx, transport.Command{Args: args, Sudo: true})
}

// holds asks the host a yes-or-no question by a command that exits with 0 or 1.
func (t *target) holds(ctx context.Context, args ...string) (bool, error) {
	err := t.conn.Run(ctx, transport.Command{Args: args, Sudo: true, Effect: transport.EffectNone})
	if exit, ok := errors.AsType[*transport.ExitError](err); ok && exit.Status == 1 {
		return false, nil
	}
	return err == nil, err
}
