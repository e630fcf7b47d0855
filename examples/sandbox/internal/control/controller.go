package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Options say which controller to run.
type Options struct {
	Vars     Vars
	Config   Config
	Hostname string // names the etcd member; its lower-cased form names the objects
	Version  string // k0s's, for the ControlNode
	Log      *slog.Logger
	// Disabled are the components that --disable-components names.
	Disabled map[string]bool
	// Ready is called once, when the API server answers. Run goes on meanwhile.
	Ready func(context.Context)
}

// Run runs a controller until the context ends and then stops its components, the API server
// before etcd. It gives an error if they could not be started; one that breaks later is started
// again and again, as k0s does.
func Run(ctx context.Context, o Options) error {
	for _, name := range []string{"kube-apiserver", "kube-controller-manager"} {
		if _, err := os.Stat(ToolPath(name)); err != nil {
			return fmt.Errorf("the sandbox has to bring %s along: %w", name, err)
		}
	}
	if err := prepare(o); err != nil {
		return err
	}
	users := o.Config.Spec.InstallConfig.Users
	kubePKIDone := make(chan error, 1)
	go func() { kubePKIDone <- kubePKI(o.Vars, o.Config.Spec) }()
	if err := etcdPKI(o.Vars, o.Config.Spec); err != nil {
		return fmt.Errorf("failed to create etcd certs: %w", errors.Join(err, <-kubePKIDone))
	}
	if err := prepareEtcd(o.Vars, o.Config.Spec); err != nil {
		return err
	}

	var etcd, kube group
	defer etcd.stop()
	defer kube.stop()

	o.Log.Info("Starting etcd")
	etcd.start(ctx, process{
		name: "etcd", path: "/proc/self/exe", user: users.Etcd, runDir: o.Vars.RunDir, stop: 10 * time.Second, log: o.Log,
		args: append(flags(etcdArgs(o.Vars, o.Config.Spec, o.Hostname)), o.Config.Spec.Storage.Etcd.RawArgs...),
	})
	if err := <-kubePKIDone; err != nil {
		return fmt.Errorf("failed to create certificates: %w", err)
	}
	self, err := waitEtcd(ctx, o.Vars)
	if err != nil {
		o.Log.Debug("etcd", "error", err)
		return errors.New("failed to start controller node components: Etcd health-check timed out")
	}

	o.Log.Info("etcd is healthy")

	o.Log.Info("Starting kube-apiserver")
	kube.start(ctx, process{
		name: "kube-apiserver", path: ToolPath("kube-apiserver"), user: users.APIServer, runDir: o.Vars.RunDir, stop: 20 * time.Second, log: o.Log,
		env: []string{apiServerGC}, args: apiServerArgs(o.Vars, o.Config.Spec),
	})
	clients, err := waitAPI(ctx, o.Vars)
	if err != nil {
		return fmt.Errorf("failed to start controller node components: kube-apiserver health-check timed out: %w", err)
	}
	o.Log.Info("kube-apiserver is ready")
	if !o.Disabled["kube-controller-manager"] {
		// It runs as the API server's user and signs with this key.
		if err := chown(filepath.Join(o.Vars.CertRootDir, "ca.key"), owner(users.APIServer)); err != nil {
			return err
		}
		o.Log.Info("Starting kube-controller-manager")
		kube.start(ctx, process{
			name: "kube-controller-manager", path: ToolPath("kube-controller-manager"), user: users.APIServer, runDir: o.Vars.RunDir, stop: 5 * time.Second, log: o.Log,
			args: managerArgs(o.Vars, o.Config.Spec),
		})
	}
	var own sync.WaitGroup
	defer own.Wait()
	own.Go(func() { o.tend(ctx, clients, self) })
	if o.Ready != nil {
		own.Go(func() { o.Ready(ctx) })
	}
	<-ctx.Done()
	return nil
}

// tend does what k0s itself does in the cluster: its objects, its lease, the roles of nodes.
func (o Options) tend(ctx context.Context, c clients, self member) {
	node := NodeName(o.Hostname)
	spec := o.Config.Spec
	steps := []struct {
		what string
		do   func(context.Context) error
	}{
		{"apply the built-in manifests", func(ctx context.Context) error { return applyObjects(ctx, c.dynamic) }},
		{"announce the etcd member", func(ctx context.Context) error {
			return announceMember(ctx, c.dynamic, node, o.Vars.InvocationID, spec.Storage.Etcd.PeerAddress, self)
		}},
		{"announce the control node", func(ctx context.Context) error {
			return announceControlNode(ctx, c.dynamic, node, localAddress(spec), o.Version)
		}},
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { holdLease(ctx, c.kube, node, o.Vars.InvocationID, o.Log) })
	wg.Go(func() { nodeRoles(ctx, c.kube, o.Log) })
	for _, s := range steps {
		err := poll(ctx, 200*time.Millisecond, func(ctx context.Context) error {
			err := s.do(ctx)
			if err != nil {
				o.Log.Debug("Failed to "+s.what, "error", err)
			}
			return err
		})
		if err != nil {
			return
		}
	}
}

// prepare makes the directories with k0s's modes.
func prepare(o Options) error {
	for _, d := range []struct {
		path string
		mode fs.FileMode
	}{
		{o.Vars.DataDir, 0o755}, {o.Vars.RunDir, 0o755}, {o.Vars.BinDir, 0o755},
		{o.Vars.CertRootDir, 0o751}, {o.Vars.EtcdCertDir, 0o711}, {o.Vars.ManifestsDir, 0o755},
	} {
		if err := mkdir(d.path, d.mode); err != nil {
			return err
		}
	}
	return prepareAPIServer(o.Vars, o.Config.Spec)
}

// mkdir makes a directory that has the mode whether it was there or not.
func mkdir(path string, mode fs.FileMode) error {
	if err := os.MkdirAll(path, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// clients are the administrator's connections to the local API server.
type clients struct {
	kube    kubernetes.Interface
	dynamic dynamic.Interface
}

// AdminConfig is how k0s's own commands reach the API server of the controller they run on.
func AdminConfig(v Vars) (*rest.Config, error) {
	c, err := clientcmd.BuildConfigFromFlags("", v.AdminKubeConfigPath)
	if err != nil {
		return nil, err
	}
	c.QPS, c.Burst, c.Timeout = 40, 400, 30*time.Second
	c.UserAgent = "k0s"
	return c, nil
}

// waitAPI waits until the API server says that it is ready.
func waitAPI(ctx context.Context, v Vars) (clients, error) {
	conf, err := AdminConfig(v)
	if err != nil {
		return clients{}, err
	}
	kube, err := kubernetes.NewForConfig(conf)
	if err != nil {
		return clients{}, err
	}
	dyn, err := dynamic.NewForConfig(conf)
	if err != nil {
		return clients{}, err
	}
	err = poll(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return kube.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
	return clients{kube: kube, dynamic: dyn}, err
}

// group is a set of processes that end together.
type group struct {
	wg     sync.WaitGroup
	cancel []context.CancelFunc
}

// start runs the process until the group is stopped. It does not end with ctx, so that the order
// of stopping is the caller's.
func (g *group) start(ctx context.Context, p process) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g.cancel = append(g.cancel, cancel)
	g.wg.Go(func() { p.run(ctx) })
}

func (g *group) stop() {
	for _, cancel := range g.cancel {
		cancel()
	}
	g.wg.Wait()
}
