package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// The kinds that the operator watches besides its own.
var (
	pods         = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodes        = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	deployments  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
)

// afterFailure is how long the operator waits before it tries again what failed.
const afterFailure = 500 * time.Millisecond

// RunOptions say how the operator runs. The zero value is fine.
type RunOptions struct {
	// Webhook is where the validating webhook is served: on an address that the API servers
	// reach. Run closes it. There is no webhook if it is nil.
	Webhook net.Listener
	// Log takes what the operator has to say; nothing is logged if it is nil.
	Log *slog.Logger
}

// Run is the operator, until the context ends. It reconciles the MkeConfig (its observed
// generation, the replicas of the workloads that follow the number of controllers) and plays
// scheduler and kubelet for the pods of MKE's own namespaces, which run nothing. It writes
// nothing as long as nothing changes. It lives through an API server that is away.
func Run(ctx context.Context, cfg *rest.Config, o RunOptions) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c, err := connect(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if o.Webhook != nil {
		stopped, err := serveWebhook(ctx, c, o.Webhook, o.Log)
		if err != nil {
			return err
		}
		go func() { cancel(<-stopped) }()
	}

	op, err := newReconciler(ctx, c, o.Log)
	if err != nil {
		return err
	}
	defer op.factory.Shutdown()
	defer cancel(nil)
	op.loop(ctx, o.Log)
	if err := context.Cause(ctx); !errors.Is(err, ctx.Err()) {
		return err
	}
	return nil
}

// watch makes every change of a kind wake the operator, and keeps the informer's complaints
// in the log.
func watch(inf cache.SharedIndexInformer, what string, changed chan<- struct{}, log *slog.Logger) error {
	wake := func(any) {
		select {
		case changed <- struct{}{}:
		default: // it is going to look at everything anyway
		}
	}
	_, err := inf.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: wake, DeleteFunc: wake, UpdateFunc: func(_, now any) { wake(now) },
	})
	if err == nil {
		err = inf.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
			log.Debug("mke operator: watch", "resource", what, "error", err)
		})
	}
	if err != nil {
		return fmt.Errorf("mke operator: watch %s: %w", what, err)
	}
	return nil
}

// A reconciler holds the cluster against what it should be.
type reconciler struct {
	client
	factory dynamicinformer.DynamicSharedInformerFactory
	list    map[schema.GroupVersionResource]cache.GenericLister
	changed chan struct{} // holds one, if anything has changed since it was taken
}

// newReconciler watches until the context ends; it returns once it has seen everything.
func newReconciler(ctx context.Context, c client, log *slog.Logger) (*reconciler, error) {
	r := &reconciler{
		client: c, factory: dynamicinformer.NewDynamicSharedInformerFactory(c, 0),
		list: map[schema.GroupVersionResource]cache.GenericLister{}, changed: make(chan struct{}, 1),
	}
	for _, gvr := range []schema.GroupVersionResource{configs, releases, pods, nodes, deployments, statefulSets} {
		inf := r.factory.ForResource(gvr)
		r.list[gvr] = inf.Lister()
		if err := watch(inf.Informer(), gvr.Resource, r.changed, log); err != nil {
			return nil, err
		}
	}
	r.factory.Start(ctx.Done())
	for gvr, ok := range r.factory.WaitForCacheSync(ctx.Done()) {
		if !ok && ctx.Err() == nil {
			return nil, fmt.Errorf("mke operator: no list of %s", gvr.Resource)
		}
	}
	return r, nil
}

// loop reconciles when something has changed, and again a little later if that failed.
func (r *reconciler) loop(ctx context.Context, log *slog.Logger) {
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.changed:
		case <-again.C:
		}
		if err := r.reconcile(ctx); err != nil && ctx.Err() == nil {
			log.Debug("mke operator: reconcile", "error", err)
			again.Reset(afterFailure)
		}
	}
}

func (r *reconciler) reconcile(ctx context.Context) error {
	var errs []error
	controllers := 1
	for _, obj := range r.objects(configs) {
		if obj.GetName() == ConfigName {
			controllers = max(1, countControllers(obj))
		}
		if complete(obj, configConditions, time.Now()) {
			errs = append(errs, r.settleOnce(ctx, configs, obj.GetName(), configConditions))
		}
	}
	for _, obj := range r.objects(releases) {
		if complete(obj, releaseConditions, time.Now()) {
			errs = append(errs, r.settleOnce(ctx, releases, obj.GetName(), releaseConditions))
		}
	}
	errs = append(errs, r.scale(ctx, controllers), r.runPods(ctx))
	return errors.Join(errs...)
}

// objects are copies of what is known of a kind in MKE's namespaces, and of all nodes.
func (r *reconciler) objects(gvr schema.GroupVersionResource) []*unstructured.Unstructured {
	list, _ := r.list[gvr].List(labels.Everything()) // a cache has no reason to fail
	var objs []*unstructured.Unstructured
	for _, o := range list {
		o, ok := o.(*unstructured.Unstructured)
		if ok && (gvr == nodes || o.GetNamespace() == Namespace || o.GetNamespace() == K0rdentNamespace) {
			objs = append(objs, o.DeepCopy())
		}
	}
	return objs
}
