// Package sandboxtest gives a test a sandbox of its own, which ends with the test.
package sandboxtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/cluster"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/host"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/tools"
)

// Shape is what a host passes for; see its fields. The zero value is an Ubuntu 24.04 with 16 GiB
// of memory and 64 GiB of disk.
type Shape = host.Shape

// The SSH servers that hosts can run.
const (
	OpenSSH = host.OpenSSH
	Builtin = host.Builtin
)

// Config is the sandbox that a test wants. The zero value is a cluster of one controller, c1.
type Config struct {
	Controllers int              // c1, …; 0 means 1, which is the most there can be as yet
	Spare       int              // h1, h2, h3, h5, …: hosts of no cluster, reached directly
	Bastion     bool             // adds the host bastion, and h4 behind it
	SSH         string           // OpenSSH or Builtin; empty takes MKESDK_SANDBOX_SSH, else OpenSSH where it is installed
	Shapes      map[string]Shape // by name of the host
	HostsOnly   bool             // no cluster: c1 is a plain host too
}

// Cluster is a running sandbox.
type Cluster struct {
	t      testing.TB
	client *cluster.Sandbox
	dir    string
}

// startWait is how long a sandbox may take, once its programs are built, before the test fails:
// far more than it takes even on a machine that does much else.
const startWait = 3 * time.Minute

// New starts a sandbox for the test, and ends it with the test. A test that failed says where what
// the hosts were told and what their services wrote is kept, and prints the end of it. Without root the test is skipped. The first call
// on a machine builds the programs, which takes minutes.
func New(t testing.TB, cfg Config) *Cluster {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a sandbox is made of namespaces, which takes root; run the tests as root")
	}
	if cfg.SSH == "" {
		cfg.SSH = os.Getenv("MKESDK_SANDBOX_SSH")
	}
	programs, err := built()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), startWait)
	defer cancel()
	began := time.Now()
	s, err := cluster.Up(ctx, cluster.Config{
		Dir: dir, Programs: programs, Controllers: cfg.Controllers, Spare: cfg.Spare, Bastion: cfg.Bastion,
		SSH: cfg.SSH, Shapes: cfg.Shapes, HostsOnly: cfg.HostsOnly,
	}, nil)
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, cluster.LogFile)) // the error is said all the same
		t.Fatalf("%v\n%s", err, log)
	}
	c := &Cluster{t: t, client: s, dir: dir}
	t.Cleanup(func() {
		if t.Failed() {
			c.tell()
		}
		s.Close()
	})
	t.Logf("sandbox ready in %v", time.Since(began).Round(10*time.Millisecond))
	return c
}

// built builds the sandbox's programs, once for all tests of a test program: sources do not change
// under it, and even a build that has nothing to do takes a second or more.
var built = sync.OnceValues(func() (map[string]string, error) {
	say := func(line string) { fmt.Fprintln(os.Stderr, "sandbox:", line) }
	return tools.Builder{Say: say}.Programs(context.Background())
})

// Dir is the state directory: hosts.yaml, kubeconfig, keys.
func (c *Cluster) Dir() string { return c.dir }

// HostsYAML is the path of a hosts.yaml that lists h1, h2 and, with a bastion, h4 as workers.
func (c *Cluster) HostsYAML() string { return filepath.Join(c.dir, cluster.HostsFile) }

// Kubeconfig is the path of the administrator's kubeconfig. Its server is reached through Dial.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.dir, cluster.KubeconfigFile) }

// KnownHosts is the path of a known_hosts with the keys of every host.
func (c *Cluster) KnownHosts() string { return filepath.Join(c.dir, cluster.KnownHostsFile) }

// Key is the path of the operator's private key, which every host knows.
func (c *Cluster) Key() string { return filepath.Join(c.dir, cluster.KeyFile) }

// HostsYAMLOf writes a hosts.yaml that lists those hosts as workers, and returns its path.
func (c *Cluster) HostsYAMLOf(names ...string) string {
	c.t.Helper()
	st := c.status()
	var list, all []cluster.Plan
	for _, h := range st.Hosts {
		all = append(all, h.Plan)
	}
	for _, n := range names {
		list = append(list, c.Host(n).plan)
	}
	text, err := cluster.HostsYAML(list, all, c.dir)
	if err != nil {
		c.t.Fatal(err)
	}
	path := filepath.Join(c.t.TempDir(), "hosts.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// Dial connects as the operator's side does. It fits transport.Dialer's NetDial.
func (c *Cluster) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return c.client.Dial(ctx, network, addr)
}

// RESTConfig is the administrator's access to the cluster, through Dial.
func (c *Cluster) RESTConfig() *rest.Config {
	c.t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		c.t.Fatal(err)
	}
	cfg.Dial = c.Dial
	return cfg
}

// Client is the sandbox itself, for what has no method here.
func (c *Cluster) Client() *cluster.Client { return c.client.Client }

// Pid is the process number of the sandbox's supervisor.
func (c *Cluster) Pid() int { return c.client.Pid() }

// Ended is closed when the sandbox has ended.
func (c *Cluster) Ended() <-chan struct{} { return c.client.Ended() }

func (c *Cluster) status() cluster.Status {
	c.t.Helper()
	st, err := c.client.Status(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return st
}
