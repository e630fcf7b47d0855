package hosts

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"fmt"
	"path"
	"strconv"
	"time"

	"github.com/mkesdk/mkesdk/transport"
)

// factsScript is what runs on a host. Its first line names it in logs.
//
//go:embed facts.sh
var factsScript string

// CollectOptions say where to look. The zero value is k0s's own defaults.
type CollectOptions struct {
	// DataDir is k0s's data directory on hosts where no service names another,
	// absolute; empty means /var/lib/k0s.
	DataDir string
	// KubeletRootDir is the kubelet's root directory where no service names
	// another, absolute; empty means the directory kubelet below the data directory.
	KubeletRootDir string
	// Timeout is how long one command on the host, as k0s status, may take; it is
	// rounded up to whole seconds. 0 means 10 s. The whole is bounded by ctx.
	Timeout time.Duration
	// Now is the caller's clock, for measuring the skew of the host's; nil means
	// time.Now.
	Now func() time.Time
}

// DefaultDataDir is k0s's data directory where nobody asks for another.
const DefaultDataDir = "/var/lib/k0s"

// maxOutput bounds what is taken from a host. Facts are a few KiB.
const maxOutput = 4 << 20

// Collect gathers the facts of the host behind c by one script in one round trip,
// as root. It changes nothing on the host. What could not be observed is unknown
// in the facts; an error means that there are none: the host was lost, sudo
// refused, or what came back is not what the script prints.
func Collect(ctx context.Context, c transport.Conn, o CollectOptions) (Facts, error) {
	cmd, marker, err := o.command()
	if err != nil {
		return Facts{}, err
	}
	out := &bounded{left: maxOutput}
	cmd.Stdout = out
	now := time.Now
	if o.Now != nil {
		now = o.Now
	}
	start := now()
	if err := c.Run(ctx, cmd); err != nil {
		return Facts{}, fmt.Errorf("gathering the facts of %s: %w", c, err)
	}
	f, err := parseFacts(marker, out.buf.Bytes(), start, now())
	if err != nil {
		return Facts{}, fmt.Errorf("gathering the facts of %s: %w", c, err)
	}
	return f, nil
}

// command returns the one command that gathers facts, and the marker that frames
// what it prints.
func (o CollectOptions) command() (cmd transport.Command, marker string, err error) {
	if o.DataDir == "" {
		o.DataDir = DefaultDataDir
	}
	for _, dir := range []struct{ name, path string }{{"data directory", o.DataDir}, {"kubelet root directory", o.KubeletRootDir}} {
		if dir.path != "" && (!path.IsAbs(dir.path) || path.Clean(dir.path) != dir.path || dir.path == "/") {
			return cmd, "", fmt.Errorf("hosts: the %s %q is no clean absolute path below /", dir.name, dir.path)
		}
	}
	seconds := int64(10)
	if o.Timeout > 0 {
		seconds = int64((o.Timeout + time.Second - 1) / time.Second)
	}
	random := make([]byte, 16)
	rand.Read(random) // never fails
	marker = "mkesdk-" + hex.EncodeToString(random)
	return transport.Command{
		Args:   []string{"/bin/sh", "-c", factsScript, "mkesdk-facts", marker, o.DataDir, o.KubeletRootDir, strconv.FormatInt(seconds, 10)},
		Sudo:   true,
		Effect: transport.EffectNone,
	}, marker, nil
}

// bounded keeps what is written to it, up to a bound.
type bounded struct {
	buf  bytes.Buffer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	if len(p) > b.left {
		return 0, fmt.Errorf("the host printed more than %d bytes", maxOutput)
	}
	b.left -= len(p)
	return b.buf.Write(p)
}
