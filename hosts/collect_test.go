package hosts

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/transport"
)

// localConn runs commands on this machine, under a shell of choice.
type localConn struct {
	shell string
	env   []string
	extra []string
}

func (c localConn) Run(ctx context.Context, cmd transport.Command) error {
	args := append(cmd.Args[1:len(cmd.Args):len(cmd.Args)], c.extra...)
	x := exec.CommandContext(ctx, c.shell, args...)
	x.Env, x.Stdout, x.Stderr = c.env, cmd.Stdout, cmd.Stderr
	return x.Run()
}
func (c localConn) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.ErrUnsupported
}
func (c localConn) Close() error   { return nil }
func (c localConn) String() string { return "root@here:22" }

// TestCollectHere runs the script on the machine that the test runs on: whatever it
// is, the script gets through under each shell that is there.
func TestCollectHere(t *testing.T) {
	for _, shell := range []string{"dash", "bash", "busybox"} {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("no %s on this machine", shell)
			}
			f, err := Collect(t.Context(), localConn{shell: path}, CollectOptions{Timeout: 5 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", f)
		})
	}
}
