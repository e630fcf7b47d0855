package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/cluster"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/k0s"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/network"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/ociregistry"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/operator"
	"github.com/mkesdk/mkesdk/hosts"
)

// registryPort is where the registry listens, at network.Registry.
const registryPort = "5000"

// parts are what lives beside the cluster: the registry and what plays MKE.
func parts() []cluster.Part {
	return []cluster.Part{{Name: "MKE", Start: startMKE}}
}

func startMKE(ctx context.Context, p cluster.Params) error {
	log := slog.New(slog.NewTextHandler(p.Log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	cfg, err := clientcmd.RESTConfigFromKubeConfig(p.Kubeconfig)
	if err != nil {
		return err
	}
	reg, err := ociregistry.New(ociregistry.Config{Hosts: []string{network.Registry, "registry"}, Log: log})
	if err != nil {
		return err
	}
	addr := net.JoinHostPort(network.Registry, registryPort)
	var g errgroup.Group
	g.Go(func() error { return reg.PushK0s(k0s.Version, "linux/"+runtime.GOARCH, p.K0s) })
	g.Go(func() error {
		return operator.Setup(ctx, cfg, operator.Params{
			Hosts: controllers(p), ImageRegistry: reg.URL(addr), CAData: string(reg.CA()),
		})
	})
	if err := g.Wait(); err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	hook, err := net.Listen("tcp", net.JoinHostPort(network.Operator, "0"))
	if err != nil {
		return errors.Join(err, l.Close())
	}
	go report(log, "registry", func() error { return reg.Serve(ctx, l) })
	go report(log, "MKE operator", func() error { return operator.Run(ctx, cfg, operator.RunOptions{Webhook: hook, Log: log}) })
	return nil
}

// report runs what goes on until the sandbox ends, and says when it ended before.
func report(log *slog.Logger, what string, run func() error) {
	if err := run(); err != nil && !errors.Is(err, context.Canceled) {
		log.Error(fmt.Sprintf("%s: %v", what, err))
	}
}

// controllers are the sandbox's controllers as MkeConfig lists them.
func controllers(p cluster.Params) []hosts.Spec {
	var out []hosts.Spec
	for _, plan := range p.Plans {
		if plan.Role != cluster.Controller {
			continue
		}
		out = append(out, hosts.Spec{
			Role: hosts.ControllerWorker,
			SSH:  hosts.SSH{Address: plan.Address, User: "root", Port: 22, KeyPath: filepath.Join(p.Dir, cluster.KeyFile)},
		})
	}
	return out
}
