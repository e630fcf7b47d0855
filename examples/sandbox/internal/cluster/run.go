package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/initd"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/wire"
)

// Run runs a command on a host, with these files as its standard ones, and returns its exit
// status. The command ends when ctx does.
func (c *Client) Run(ctx context.Context, host string, e initd.Exec, stdin, stdout, stderr *os.File) (int, error) {
	conn, err := c.Init(ctx, host)
	if err != nil {
		return 0, err
	}
	code, err := run(ctx, conn, e, stdin, stdout, stderr)
	if err != nil {
		return 0, fmt.Errorf("host %s: %w", host, err)
	}
	return code, nil
}

// Output is Run for a command whose input and output fit into memory; both streams are in what it
// returns, less the final newline.
func (c *Client) Output(ctx context.Context, host string, stdin []byte, args ...string) (string, int, error) {
	conn, err := c.Init(ctx, host)
	if err != nil {
		return "", 0, err
	}
	out, code, err := output(ctx, conn, stdin, args)
	if err != nil {
		return "", 0, fmt.Errorf("host %s: %w", host, err)
	}
	return out, code, nil
}

// run asks the init at the other end of conn, which is closed in the end.
func run(ctx context.Context, conn *net.UnixConn, e initd.Exec, stdin, stdout, stderr *os.File) (int, error) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	err := wire.Send(conn, initd.Request{Exec: &e}, stdin, stdout, stderr)
	for err == nil {
		var r initd.Reply
		if _, err = wire.Receive(conn, &r); err != nil {
			break
		}
		if r.Failure != nil {
			return 0, r.Failure
		}
		if r.Ended {
			return r.Code, nil
		}
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	} else if errors.Is(err, io.EOF) {
		err = errors.New("the host went down meanwhile")
	}
	return 0, fmt.Errorf("%s: %w", strings.Join(e.Args, " "), err)
}

func output(ctx context.Context, conn *net.UnixConn, stdin []byte, args []string) (string, int, error) {
	in, err := scratch(stdin)
	if err != nil {
		return "", 0, errors.Join(err, conn.Close())
	}
	defer in.Close()
	// A file and not a pipe: a service that the command starts may keep it open.
	out, err := scratch(nil)
	if err != nil {
		return "", 0, errors.Join(err, conn.Close())
	}
	defer out.Close()
	code, err := run(ctx, conn, initd.Exec{Args: args}, in, out, out)
	if err != nil {
		return "", 0, err
	}
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return "", 0, err
	}
	var text bytes.Buffer
	if _, err := io.Copy(&text, out); err != nil {
		return "", 0, err
	}
	return strings.TrimSuffix(text.String(), "\n"), code, nil
}

// scratch is a file without a name that holds data, to be read from its start.
func scratch(data []byte) (*os.File, error) {
	f, err := os.CreateTemp("", "mkesdk-sandbox-*")
	if err != nil {
		return nil, err
	}
	err = os.Remove(f.Name())
	if err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
