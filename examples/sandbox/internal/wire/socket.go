package wire

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// A unix socket's name holds 107 bytes, fewer than the state directory of a test with a long
// name; through an open directory the name is short wherever the directory is.
func throughDir(path string, use func(short string) error) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return use(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)))
}

// Listen makes the socket path, for its owner alone. One that a dead process left is replaced.
func Listen(path string) (*net.UnixListener, error) {
	var l *net.UnixListener
	err := throughDir(path, func(short string) error {
		if err := os.Remove(short); err != nil && !os.IsNotExist(err) {
			return err
		}
		var err error
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
		if err != nil {
			return err
		}
		// The short name means nothing once the directory is closed.
		l.SetUnlinkOnClose(false)
		return os.Chmod(short, 0o600)
	})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return l, nil
}

// Dial connects to the socket path.
func Dial(ctx context.Context, path string) (*net.UnixConn, error) {
	var c *net.UnixConn
	err := throughDir(path, func(short string) error {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", short)
		if err != nil {
			return err
		}
		c = conn.(*net.UnixConn)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", path, err)
	}
	return c, nil
}
