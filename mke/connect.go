package mke

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// ConnectOptions say how to reach a cluster. SSH is required, and one of Kubeconfig
// and REST.
type ConnectOptions struct {
	// Kubeconfig is the path of a kubeconfig, or several as in KUBECONFIG, joined
	// by os.PathListSeparator, of which those that exist are merged. See
	// [DefaultKubeconfig]. It is not read if REST is set.
	Kubeconfig string
	// REST is how to reach the API server. It is copied. Its QPS, Burst and Timeout are
	// set if they are zero, the last because a frozen API server must not freeze its
	// client.
	REST *rest.Config
	// SSH connects to hosts; see [SSH]. It stays the caller's: Cluster.Close leaves it
	// open.
	SSH Dialer
	// RegistryDial, if set, opens the connections to the cluster's registry, for a caller
	// whose own network does not reach it; such as the Dial of a connection to a host. If
	// nil this machine's network and the proxies in its environment are used.
	RegistryDial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// What the client of the API server allows itself. An operation on a hundred hosts
// lists the nodes once a second for each; client-go's own bound of five requests a
// second would make it wait for itself.
const (
	apiQPS     = 100
	apiBurst   = 200
	apiTimeout = 30 * time.Second
)

// Connect reaches the API server of a cluster and reads its MkeConfig, so that what
// is wrong with either is known before anything begins.
//
// The error matches [ErrInvalid] if the options or the kubeconfig cannot be meant,
// [ErrOtherCluster] if the API server has a certificate that the kubeconfig does not
// vouch for, and [ErrNotFound] if the cluster has no MkeConfig.
func Connect(ctx context.Context, o ConnectOptions) (*Cluster, error) {
	config, err := o.rest()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, o.source(), err)
	}
	kube, err := kubernetes.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, o.source(), err)
	}
	dyn, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, o.source(), err)
	}
	mkeConfig := kubeConfig{client: dyn}
	if s, ok := o.SSH.(*SSH); ok {
		mkeConfig.ssh = s.existing
	}
	c := &Cluster{
		Nodes:     kubeNodes{kube.CoreV1().Nodes()},
		Config:    mkeConfig,
		Etcd:      sshEtcd{},
		Leases:    kubeLeases{kube.CoordinationV1().Leases(Namespace)},
		Artifacts: registryArtifacts{dial: o.RegistryDial},
		SSH:       o.SSH,
		CA:        config.CAData,
		close:     func() error { utilnet.CloseIdleConnectionsFor(client.Transport); return nil },
	}
	if _, err := c.Config.Get(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("the cluster at %s, of %s: %w", config.Host, o.source(), err), c.Close())
	}
	return c, nil
}

// rest returns the configuration of the client, with its defaults.
func (o ConnectOptions) rest() (*rest.Config, error) {
	if o.SSH == nil {
		return nil, errors.New("ConnectOptions.SSH is nil: want what connects to hosts, such as &mke.SSH{…}")
	}
	config := o.REST
	if config == nil {
		var err error
		if config, err = load(o.Kubeconfig); err != nil {
			return nil, err
		}
	}
	config = rest.CopyConfig(config)
	if config.QPS == 0 {
		config.QPS, config.Burst = apiQPS, apiBurst
	}
	if config.Timeout == 0 {
		config.Timeout = apiTimeout
	}
	// The CA is what tells one cluster from another; it is read here so that the whole
	// operation goes by one.
	if len(config.CAData) == 0 && config.CAFile != "" {
		data, err := os.ReadFile(config.CAFile)
		if err != nil {
			return nil, fmt.Errorf("%s: certificate-authority: %w", o.source(), err)
		}
		config.CAData, config.CAFile = data, ""
	}
	if config.Insecure || len(config.CAData) == 0 {
		return nil, fmt.Errorf("%s names no certificate-authority: without one the hosts of this cluster cannot be told from those of another; use the kubeconfig that MKE wrote", o.source())
	}
	return config, nil
}

// source says in an error where the configuration comes from.
func (o ConnectOptions) source() string {
	if o.REST != nil {
		return "ConnectOptions.REST"
	}
	return "kubeconfig " + o.Kubeconfig
}

// load reads a kubeconfig, or merges several.
func load(list string) (*rest.Config, error) {
	paths := filepath.SplitList(list)
	if len(paths) == 0 {
		return nil, errors.New("no kubeconfig: ConnectOptions.Kubeconfig is empty; see mke.DefaultKubeconfig")
	}
	var there, missing []string
	for _, path := range paths {
		if path == "" {
			continue
		}
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, path)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("kubeconfig: %w", err)
		}
		f.Close()
		there = append(there, path)
	}
	if len(there) == 0 {
		return nil, fmt.Errorf("no kubeconfig: looked for %s, and there is none: give its path (mkectl: --kubeconfig, or KUBECONFIG, or ~/.mke/mke.kubeconf)", strings.Join(missing, ", "))
	}
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: there, WarnIfAllMissing: false}
	raw, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s cannot be read: want the YAML that MKE wrote: %w", strings.Join(there, ", "), err)
	}
	if raw.CurrentContext == "" {
		return nil, fmt.Errorf("kubeconfig %s has no current-context: choose one with kubectl config use-context", strings.Join(there, ", "))
	}
	config, err := clientcmd.NewDefaultClientConfig(*raw, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", strings.Join(there, ", "), err)
	}
	return config, nil
}

// DefaultKubeconfig returns the kubeconfig that a program goes by: what its
// --kubeconfig flag says, else KUBECONFIG, else ~/.mke/mke.kubeconf. getenv is
// os.Getenv in programs. A leading "~/" of the flag is not expanded: the shell did.
func DefaultKubeconfig(flag string, getenv func(string) string) string {
	if flag != "" {
		return flag
	}
	if env := getenv("KUBECONFIG"); env != "" {
		return env
	}
	return filepath.Join(getenv("HOME"), ".mke", "mke.kubeconf")
}
