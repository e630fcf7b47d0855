// Package kubelet plays the kubelet of one host: it gets its certificate with a bootstrap token, registers the Node and keeps it Ready.
//
// Against the API server it is real: a certificate signing request that the cluster approves and
// signs, a Node written with that certificate, a lease that is renewed. On the host it runs
// nothing.
package kubelet

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Options say which node to play.
type Options struct {
	NodeName   string
	Kubeconfig string // written by the bootstrap, read afterwards
	RootDir    string // pki/ below it holds the certificate
	Version    string // the node's kubeletVersion

	Labels        map[string]string
	Taints        []corev1.Taint
	NodeIP        string // empty: the host's first address
	ExternalCloud bool   // register with the taint of a node that a cloud provider has yet to see

	// Bootstrap gives the kubeconfig to bootstrap with; it is asked only if Kubeconfig is not there.
	Bootstrap func() (*clientcmdapi.Config, error)
	// Knobs are what a test or a person can bend. The zero value is a kubelet that just works.
	Knobs Knobs
	Log   *slog.Logger
}

// Knobs bend a kubelet. A nil function is one that always says no.
type Knobs struct {
	// NeverBootstrap makes the certificate never be asked for.
	NeverBootstrap bool
	// NeverRegister makes the Node never appear.
	NeverRegister bool
	// StartDelay passes between having a certificate and registering.
	StartDelay time.Duration
	// NotReady is asked at each heart-beat whether the node is to say that it is not ready.
	NotReady func() bool
}

// How often the node's lease is renewed and its status is written. The real kubelet renews every
// 10 s; the controller manager of the sandbox is as impatient as this is quick.
const (
	leaseEvery  = 2 * time.Second
	statusEvery = 10 * time.Second
)

// Bootstrap makes sure that there is a kubeconfig with a certificate for the node, and waits for
// it if need be. Errors of a join token that cannot be read are final; everything else is tried
// again until the context ends.
func Bootstrap(ctx context.Context, o Options) error {
	if _, err := os.Stat(o.Kubeconfig); err == nil {
		return nil
	}
	if o.Knobs.NeverBootstrap {
		o.Log.Warn("a knob of the sandbox keeps this kubelet from asking for a certificate")
		<-ctx.Done()
		return ctx.Err()
	}
	if o.Bootstrap == nil {
		return fmt.Errorf("%s is not there and no join token was given: the kubelet has nothing to show to the API server", o.Kubeconfig)
	}
	conf, err := o.Bootstrap()
	if err != nil {
		return fmt.Errorf("failed to get bootstrap kubeconfig: %w", err)
	}
	o.Log.Info("Bootstrapping client configuration", "component", "bootstrap-kubelet", "node_name", o.NodeName)
	wait := time.Second
	for {
		if err = requestCertificate(ctx, o, conf); err == nil {
			o.Log.Info("Successfully bootstrapped client configuration", "component", "bootstrap-kubelet", "node_name", o.NodeName)
			return nil
		}
		o.Log.Warn("Failed to bootstrap client configuration, retrying after backoff", "component", "bootstrap-kubelet", "error", err)
		select {
		case <-ctx.Done():
			return fmt.Errorf("failed to bootstrap client configuration: %w", err)
		case <-time.After(wait):
		}
		wait = min(2*wait, 8*time.Second)
	}
}

// Client gives the node's own connection to the API server.
func Client(kubeconfig string) (kubernetes.Interface, error) {
	conf, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	conf.UserAgent, conf.Timeout = "kubelet", 10*time.Second
	return kubernetes.NewForConfig(conf)
}

// Run registers the node and keeps it alive until the context ends. ready is called once, when
// the node is registered and Ready for the first time.
func Run(ctx context.Context, o Options, ready func()) error {
	if err := mkdirs(o.RootDir); err != nil {
		return err
	}
	log := o.Log.With("component", "kubelet")
	if o.Knobs.NeverRegister {
		log.Warn("a knob of the sandbox keeps this kubelet from registering its node")
		<-ctx.Done()
		return nil
	}
	if !sleep(ctx, o.Knobs.StartDelay) {
		return nil
	}
	c, err := Client(o.Kubeconfig)
	if err != nil {
		return fmt.Errorf("failed to load kubelet kubeconfig: %w", err)
	}
	n := &node{Options: o, client: c, log: log}
	for {
		err := n.register(ctx)
		if err == nil {
			break
		}
		log.Warn("Unable to register node with API server", "error", err)
		if !sleep(ctx, time.Second) {
			return nil
		}
	}
	log.Info("Successfully registered node")
	n.beat(ctx, ready)
	return nil
}

// rootDirs and rootFiles are what the kubelet has below its root, with their modes.
var rootDirs = []struct {
	name string
	mode os.FileMode
}{
	{"", 0o755}, {"pki", 0o755}, {"plugins", 0o750}, {"plugins_registry", 0o750}, {"pod-resources", 0o750}, {"pods", 0o750},
	{"checkpoints", 0o700}, {"image_manager", 0o700},
}

var rootFiles = []string{"cpu_manager_state", "memory_manager_state", "dra_manager_state"}

// mkdirs makes what of that is not there.
func mkdirs(root string) error {
	for _, d := range rootDirs {
		if err := os.MkdirAll(filepath.Join(root, d.name), d.mode); err != nil {
			return err
		}
	}
	for _, name := range rootFiles {
		f, err := os.OpenFile(filepath.Join(root, name), os.O_CREATE|os.O_RDONLY, 0o600)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// sleep waits and reports whether the context still lives.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
