package e2e

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/mke"
	"github.com/mkesdk/mkesdk/transport"
)

// opTime bounds one operation: far more than any takes, so that one that hangs does not hang the
// test.
const opTime = 2 * time.Minute

// A caller is a program that embeds the SDK, and everything that it gets to see.
type caller struct {
	b       *bed
	agent   string // its user agent, in the audit log
	ssh     *mke.SSH
	cluster *mke.Cluster
	onEvent func(mke.Event) // may be nil

	mu     sync.Mutex
	calls  []transport.Call
	events []mke.Event
	log    bytes.Buffer
}

// caller connects to the cluster as a program of its own would.
func (b *bed) caller() *caller {
	b.t.Helper()
	keys, err := transport.KnownHosts(b.KnownHosts())
	if err != nil {
		b.t.Fatal(err)
	}
	c := &caller{b: b, agent: "embedder/" + strings.ReplaceAll(b.t.Name(), "/", ".")}
	c.ssh = &mke.SSH{HostKeys: keys, NetDial: b.Dial, Trace: c.trace}
	cfg := b.RESTConfig()
	cfg.UserAgent = c.agent
	c.cluster, err = mke.Connect(b.t.Context(), mke.ConnectOptions{REST: cfg, SSH: c.ssh, RegistryDial: b.Dial})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := errors.Join(c.cluster.Close(), c.ssh.Close()); err != nil {
			b.t.Error(err)
		}
	})
	return c
}

func (c *caller) trace(call transport.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, call)
}

// Write takes what the SDK logs.
func (c *caller) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.Write(p)
}

// addNodes adds those hosts and remembers what is told meanwhile.
func (c *caller) addNodes(o mke.Options) (mke.Result, error) {
	ctx, cancel := context.WithTimeout(c.b.t.Context(), opTime)
	defer cancel()
	o.Cluster = c.cluster
	o.Logger = slog.New(slog.NewTextHandler(c, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.OnEvent = func(e mke.Event) {
		c.mu.Lock()
		c.events = append(c.events, e)
		c.mu.Unlock()
		if c.onEvent != nil {
			c.onEvent(e)
		}
	}
	return mke.AddNodes(ctx, o)
}

// add is addNodes for hosts of which nothing special is wanted, and that have to come through.
func (c *caller) add(names ...string) mke.Result {
	c.b.t.Helper()
	r, err := c.addNodes(mke.Options{Hosts: c.b.specs(names...)})
	if err != nil {
		c.b.t.Fatalf("adding %v: %v\nleft: %v", names, err, r.Left)
	}
	return r
}

// on calls f once, with the first event of that stage and kind; the operation waits meanwhile.
func (c *caller) on(stage mke.Stage, kind mke.EventKind, f func()) {
	var once sync.Once
	next := c.onEvent
	c.onEvent = func(e mke.Event) {
		if e.Stage == stage && e.Kind == kind {
			once.Do(f)
		}
		if next != nil {
			next(e)
		}
	}
}

// onWaiting calls f once, when that stage has to wait for something.
func (c *caller) onWaiting(stage mke.Stage, f func()) {
	var once sync.Once
	next := c.onEvent
	c.onEvent = func(e mke.Event) {
		if e.Stage == stage && e.Deadline != nil {
			once.Do(f)
		}
		if next != nil {
			next(e)
		}
	}
}

// ran are the stages that ran, less the checks, which always do.
func (c *caller) ran() (stages []mke.Stage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	locked := false
	for _, e := range c.events {
		switch {
		case e.Stage == mke.OperationLock:
			locked = true
		case locked && e.Kind == mke.Started:
			stages = append(stages, e.Stage)
		}
	}
	return stages
}

// changing are the commands that were run for what they change.
func (c *caller) changing() (commands []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.calls {
		if call.Effect != transport.EffectNone {
			commands = append(commands, call.Host+": "+call.Command)
		}
	}
	return commands
}

// told is how many commands the SDK says it ran on the host of that address.
func (c *caller) told(address string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.calls {
		if strings.Contains(call.Host, "@"+address+":") {
			n++
		}
	}
	return n
}

// resultOf is what was done to one host.
func resultOf(t *testing.T, r mke.Result, spec hosts.Spec) mke.HostResult {
	t.Helper()
	for _, h := range r.Hosts {
		if h.Host.Address == spec.SSH.Address {
			return h
		}
	}
	t.Fatalf("the result does not name %s: %+v", spec.SSH.Address, r.Hosts)
	return mke.HostResult{}
}
