package mke

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/transport"
)

// certsDir is where the containerd of k0s looks for the CAs of registries.
const certsDir = "/etc/k0s/containerd.d/certs.d"

// syncRegistryCA writes the CA of the image registry where the host's containerd
// looks for it.
func syncRegistryCA(ctx context.Context, r *run, t *target) error {
	reg := r.config.ImageRegistry
	host, _, _ := strings.Cut(reg.URL, "/")
	dir := path.Join(certsDir, host)
	if err := r.guard(ctx); err != nil {
		return err
	}
	if err := t.sudo(ctx, "mkdir", "-p", "-m", "0755", dir); err != nil {
		return err
	}
	ca := path.Join(dir, "ca.crt")
	hostsTOML := fmt.Sprintf("server = %q\n\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n  ca = %q\n", "https://"+host, "https://"+host, ca)
	for _, f := range []struct{ name, content string }{{ca, reg.CAData}, {path.Join(dir, "hosts.toml"), hostsTOML}} {
		if err := t.write(ctx, f.name, f.content, 0o644); err != nil {
			return err
		}
	}
	r.did(t, "registry CA copied")
	return nil
}

func (t *target) write(ctx context.Context, name, content string, mode fs.FileMode) error {
	err := transport.WriteFile(ctx, t.conn, name, strings.NewReader(content), transport.FileOptions{Mode: mode, Size: int64(len(content))})
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// execType is the SELinux type of programs in /usr/local/bin. A file that was
// renamed into place keeps the type of where it was made, and systemd may then
// refuse to run it.
const execType = "bin_t"

// labelSELinux gives the k0s binary its SELinux type, and makes sure that it has it.
func labelSELinux(ctx context.Context, r *run, t *target) error {
	label := func() (string, error) {
		return transport.Output(ctx, t.conn, transport.Command{
			Args: []string{"stat", "-c", "%C", t.k0s()}, Sudo: true, Effect: transport.EffectNone,
		})
	}
	for attempt := range 2 {
		out, err := label()
		if err != nil {
			return fmt.Errorf("reading the SELinux label of %s: %w", t.k0s(), err)
		}
		typ, err := hosts.SELinuxType(out)
		if err != nil {
			return fmt.Errorf("the SELinux label of %s: %w", t.k0s(), err)
		}
		if typ == execType {
			return nil
		}
		if attempt > 0 {
			return fmt.Errorf("the SELinux type of %s is %s after chcon: want %s", t.k0s(), typ, execType)
		}
		if err := r.guard(ctx); err != nil {
			return err
		}
		if err := t.sudo(ctx, "chcon", "-t", execType, t.k0s()); err != nil {
			return fmt.Errorf("labelling %s: %w", t.k0s(), err)
		}
		r.did(t, "SELinux label set")
	}
	return nil
}
