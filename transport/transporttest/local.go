package transporttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

	"github.com/mkesdk/mkesdk/transport"
)

// Local is a [Handler] that runs commands on this machine, as the user of the test.
func Local(ctx context.Context, cmd transport.Command) error {
	c := exec.CommandContext(ctx, cmd.Args[0], cmd.Args[1:]...)
	c.Stdout, c.Stderr = cmd.Stdout, cmd.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = 2 * time.Second
	c.Env = append(c.Environ(), "LC_ALL=C")
	in, err := c.StdinPipe() // an exec.Cmd would wait for its own copy of the input to end
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			_, _ = fmt.Fprintln(cmd.Stderr, err)
			return Exit(127)
		}
		return err
	}
	broken := make(chan error, 1)
	go func() {
		err := feed(in, cmd.Stdin)
		if err != nil {
			broken <- err
			_ = c.Cancel()
		}
	}()
	err = c.Wait()
	select {
	case err := <-broken:
		return err
	default:
	}
	if _, ok := errors.AsType[*exec.ExitError](err); !ok {
		return err
	}
	status, signal := ending(c)
	if signal != "" {
		return &transport.ExitError{Status: -1, Signal: signal}
	}
	return Exit(status)
}

// feed copies the input. Only an error of the reader is one: a program may leave its input unread.
func feed(w io.WriteCloser, r io.Reader) error {
	defer w.Close() // the program may have ended
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
