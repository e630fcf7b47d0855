package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/mkesdk/mkesdk/transport/transporttest"
)

// SSHDCommand is the argument by which the sandbox's binary is the built-in SSH server.
const SSHDCommand = "builtin-sshd"

// SSHDMain is the SSH server of a host on a machine without OpenSSH. It reads the files that
// OpenSSH would, lets root in and nobody else, since it cannot become another user, and returns
// the exit status.
func SSHDMain(ctx context.Context) int {
	if err := serveSSH(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "sshd:", err)
		return 1
	}
	return 0
}

func serveSSH(ctx context.Context) error {
	paths, err := filepath.Glob("/etc/ssh/ssh_host_*_key")
	if err != nil {
		return err
	}
	var keys []ssh.Signer
	for _, p := range paths {
		pem, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		key, err := ssh.ParsePrivateKey(pem)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		keys = append(keys, key)
	}
	shell := loginShell()
	var serial atomic.Int64
	server := &transporttest.Server{
		HostKeys: keys,
		Authorize: func(user string, key ssh.PublicKey) bool {
			ok, err := authorized("/root/.ssh/authorized_keys", key)
			if err != nil {
				fmt.Fprintln(os.Stderr, "sshd:", err)
			}
			return user == "root" && ok
		},
		Shell: []string{shell, "-c"},
		Env:   []string{"HOME=/root", "USER=root", "LOGNAME=root", "SHELL=" + shell, "PATH=" + Path},
		Dir:   "/root",
		OnExec: func(e *transporttest.Exec) {
			c := Command{Time: time.Now(), User: e.User, Line: e.Wire}
			if err := WriteCommand(c, int(serial.Add(1))); err != nil {
				fmt.Fprintln(os.Stderr, "sshd: command log:", err)
			}
		},
	}
	l, err := net.Listen("tcp4", ":22")
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "built-in SSH server listening on", l.Addr())
	return server.Serve(ctx, l)
}

// authorized looks for a key in an authorized_keys file, which is read each time, as OpenSSH does.
func authorized(file string, key ssh.PublicKey) (bool, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for len(bytes.TrimSpace(data)) > 0 {
		k, _, _, rest, err := ssh.ParseAuthorizedKey(data)
		if err != nil {
			return false, fmt.Errorf("%s: %w", file, err)
		}
		if bytes.Equal(k.Marshal(), key.Marshal()) {
			return true, nil
		}
		data = rest
	}
	return false, nil
}
