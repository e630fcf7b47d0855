package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/host"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/wire"
)

// Client talks to a running sandbox. Make it with Open.
type Client struct{ dir string }

// ErrNotRunning says that no sandbox runs in a state directory.
var ErrNotRunning = errors.New("no sandbox is running")

// Open is the sandbox that runs in the state directory dir; errors.Is(err, ErrNotRunning) where
// none does.
func Open(ctx context.Context, dir string) (*Client, error) {
	c := &Client{dir: dir}
	if _, err := c.Status(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// Dir is the sandbox's state directory.
func (c *Client) Dir() string { return c.dir }

// call makes one request. The file that may come back is the caller's to close.
func (c *Client) call(ctx context.Context, req request) (reply, *os.File, error) {
	conn, err := wire.Dial(ctx, filepath.Join(c.dir, socketFile))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return reply{}, nil, fmt.Errorf("%s: %w", c.dir, ErrNotRunning)
	}
	if err != nil {
		return reply{}, nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	var r reply
	err = wire.Send(conn, req)
	var files []*os.File
	if err == nil {
		files, err = wire.Receive(conn, &r)
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = r.Failure.Err()
	}
	if err != nil {
		for _, f := range files {
			_ = f.Close()
		}
		return reply{}, nil, err
	}
	if len(files) > 0 {
		return r, files[0], nil
	}
	return r, nil, nil
}

// Status asks how the sandbox is.
func (c *Client) Status(ctx context.Context) (Status, error) {
	r, _, err := c.call(ctx, request{Op: opStatus})
	if err != nil {
		return Status{}, err
	}
	if r.Status == nil {
		return Status{}, errors.New("the sandbox that runs gave no status; it may be of another version")
	}
	return *r.Status, nil
}

// Dial connects to a TCP address as the operator's side of the sandbox does. It fits where a
// dialer is asked for: transport.Dialer's NetDial, a REST configuration's Dial.
func (c *Client) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	req := request{Op: opDial, Network: network, Address: address}
	if t, ok := ctx.Deadline(); ok {
		req.Timeout = time.Until(t)
	}
	fail := func(err error) error { return &net.OpError{Op: "dial", Net: network, Addr: name(address), Err: err} }
	_, f, err := c.call(ctx, req)
	if err != nil {
		if n, ok := errors.AsType[syscall.Errno](err); ok {
			err = os.NewSyscallError("connect", n)
		}
		return nil, fail(err)
	}
	if f == nil {
		return nil, fail(errors.New("the sandbox passed no connection"))
	}
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fail(err)
	}
	return conn, nil
}

// name is an address as it was asked for.
type name string

func (n name) Network() string { return "tcp" }
func (n name) String() string  { return string(n) }

// Break makes a fault happen to a host, or mends it.
func (c *Client) Break(ctx context.Context, host string, f Fault) error {
	_, _, err := c.call(ctx, request{Op: opFault, Host: host, Fault: f})
	return err
}

// Snapshot reads the writable layers of a host.
func (c *Client) Snapshot(ctx context.Context, host string) (host.Snapshot, error) {
	r, _, err := c.call(ctx, request{Op: opSnapshot, Host: host})
	return r.Snapshot, err
}

// Commands lists what a host was told over SSH.
func (c *Client) Commands(ctx context.Context, host string) ([]host.Command, error) {
	r, _, err := c.call(ctx, request{Op: opCommands, Host: host})
	return r.Commands, err
}

// Detach lets the sandbox live on when the process that started it is gone.
func (c *Client) Detach(ctx context.Context) error {
	_, _, err := c.call(ctx, request{Op: opDetach})
	return err
}

// Netns is the network namespace of the operator's side, for the caller to close.
func (c *Client) Netns(ctx context.Context) (*os.File, error) {
	_, f, err := c.call(ctx, request{Op: opNetns})
	return f, err
}

// Init connects to the init of a host.
func (c *Client) Init(ctx context.Context, host string) (*net.UnixConn, error) {
	_, f, err := c.call(ctx, request{Op: opInit, Host: host})
	if err != nil {
		return nil, err
	}
	if f == nil {
		return nil, fmt.Errorf("host %s: the sandbox passed no connection", host)
	}
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", host, err)
	}
	return conn.(*net.UnixConn), nil
}

// Down ends the sandbox and returns when nothing of it is left. One that does not run is no error.
func (c *Client) Down(ctx context.Context) error {
	conn, err := wire.Dial(ctx, filepath.Join(c.dir, socketFile))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	pidfd, err := peer(conn)
	if err != nil {
		return err
	}
	defer pidfd.Close()
	if err := wire.Send(conn, request{Op: opDown}); err != nil {
		return err
	}
	asked, cancel := context.WithTimeout(ctx, downWait)
	err = waitGone(asked, pidfd)
	cancel()
	if err == nil || ctx.Err() != nil {
		return err
	}
	// It hangs. There is nothing in it that an end at once could harm.
	if err := unix.PidfdSendSignal(int(pidfd.Fd()), unix.SIGKILL, nil, 0); err != nil {
		return fmt.Errorf("end the supervisor: %w", err)
	}
	return waitGone(ctx, pidfd)
}

// downWait is how long a supervisor that was asked to end may take; it ends in a fraction of a second.
const downWait = 15 * time.Second

// peer is the process at the other end of a connection.
func peer(conn *net.UnixConn) (*os.File, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var cerr error
	if err := raw.Control(func(fd uintptr) {
		cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return nil, err
	}
	if cerr != nil {
		return nil, fmt.Errorf("supervisor's process: %w", cerr)
	}
	fd, err := unix.PidfdOpen(int(cred.Pid), 0)
	if err != nil {
		return nil, fmt.Errorf("supervisor's process %d: %w", cred.Pid, err)
	}
	return os.NewFile(uintptr(fd), "supervisor"), nil
}

// waitGone waits until a process has ended. A PID 1 ends only after everything below it.
func waitGone(ctx context.Context, pidfd *os.File) error {
	for {
		fds := []unix.PollFd{{Fd: int32(pidfd.Fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 50)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("wait for the supervisor: %w", err)
		}
		if n > 0 {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the supervisor has not ended: %w", context.Cause(ctx))
		}
	}
}
