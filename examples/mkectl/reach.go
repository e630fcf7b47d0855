package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/mkesdk/mkesdk/mke"
	"github.com/mkesdk/mkesdk/transport"
)

// real is the SDK itself.
type real struct{}

func (real) addNodes(ctx context.Context, to mke.ConnectOptions, o mke.Options) (mke.Result, error) {
	connecting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-o.Stop:
			cancel(mke.ErrStopped)
		case <-connecting.Done():
		}
	}()
	cluster, err := mke.Connect(connecting, to)
	if err != nil {
		return mke.Result{}, errors.Join(stopCause(connecting), err)
	}
	defer cluster.Close()
	o.Cluster = cluster
	return mke.AddNodes(ctx, o)
}

// stopCause returns ErrStopped if that is why ctx ended.
func stopCause(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), mke.ErrStopped) {
		return mke.ErrStopped
	}
	return nil
}

func (real) locks(ctx context.Context, to mke.ConnectOptions) ([]mke.LockInfo, error) {
	cluster, err := mke.Connect(ctx, to)
	if err != nil {
		return nil, err
	}
	defer cluster.Close()
	return mke.Locks(ctx, cluster.Leases)
}

// sshFlags say how hosts are reached.
type sshFlags struct {
	key, bastionKey string
	hostKeys        string
}

func (f *sshFlags) add(to *pflag.FlagSet) {
	to.StringVar(&f.key, "ssh-key", "", "private key `FILE` for the cluster's existing controllers, in place of MkeConfig's keyPath")
	to.StringVar(&f.bastionKey, "bastion-ssh-key", "", "private key `FILE` for the bastion in front of them")
	to.StringVar(&f.hostKeys, "host-key-policy", "accept-new", "`POLICY` for host keys that are not known: accept-new writes them to ~/.mke/known_hosts, strict refuses them; a changed key is refused either way")
}

// dialer makes an SSH dialer out of the flags. What is wrong with any of them is
// said at once.
func (f *sshFlags) dialer(a *app, s *secrets) (*mke.SSH, error) {
	keys, keysErr := f.policy()
	err := errors.Join(readable("--ssh-key", f.key), readable("--bastion-ssh-key", f.bastionKey), keysErr)
	if err != nil {
		return nil, err
	}
	return &mke.SSH{
		HostKeys: keys, KeyFile: expand(f.key), BastionKeyFile: expand(f.bastionKey), AgentSocket: a.getenv("SSH_AUTH_SOCK"),
		SudoPassword: s.sudo, KeyPassphrase: s.passphrase,
	}, nil
}

// trace logs every command on every host. Secrets are masked in it already.
func trace(to *slog.Logger) func(transport.Call) {
	return func(c transport.Call) {
		to.Debug("command", "host", c.Host, "cmd", c.Command, "effect", c.Effect, "took", c.Duration.Round(time.Millisecond), "status", c.Status, "err", c.Err)
	}
}

// policy returns the host keys that are accepted.
func (f *sshFlags) policy() (transport.HostKeys, error) {
	ours, theirs := home(".mke", "known_hosts"), home(".ssh", "known_hosts")
	switch f.hostKeys {
	case "accept-new":
		return transport.AcceptNew(ours)
	case "strict":
		var there []string
		for _, name := range []string{ours, theirs} {
			if _, err := os.Stat(name); err == nil {
				there = append(there, name)
			}
		}
		if len(there) == 0 {
			return nil, fmt.Errorf("--host-key-policy strict: there is neither %s nor %s: collect the hosts' keys with ssh-keyscan and compare them", ours, theirs)
		}
		return transport.KnownHosts(there...)
	}
	return nil, fmt.Errorf("--host-key-policy %q: want strict or accept-new", f.hostKeys)
}

// readable makes sure that a file that a flag names can be read, if it names one.
func readable(flag, path string) error {
	if path == "" {
		return nil
	}
	file, err := os.Open(expand(path))
	if err == nil {
		return file.Close()
	}
	return fileError(flag, path, "want a private key that you can read", err)
}

// kubeconfig returns the file that is used: the flag's, else the environment's,
// else the one in the home directory.
func (a *app) kubeconfig() (string, error) {
	name := mke.DefaultKubeconfig(expand(a.flags.kubeconfig), a.getenv)
	if _, err := os.Stat(name); err != nil && len(filepath.SplitList(name)) < 2 { // of a list any may be absent
		where := "KUBECONFIG"
		switch {
		case a.flags.kubeconfig != "":
			where = "--kubeconfig"
		case a.getenv("KUBECONFIG") == "":
			where = "kubeconfig"
		}
		return "", fileError(where, name, "want the kubeconfig of the cluster; name it with --kubeconfig or KUBECONFIG", err)
	}
	return name, nil
}
