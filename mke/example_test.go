package mke_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/mke"
	"github.com/mkesdk/mkesdk/transport"
)

func ExampleSequence() {
	for i, stage := range mke.Sequence(mke.Add, hosts.Worker) {
		fmt.Printf("%2d %s\n", i+1, stage)
	}
	// Output:
	//  1 reachability
	//  2 host-state
	//  3 facts
	//  4 preflight
	//  5 registry
	//  6 cluster-state
	//  7 etcd-state
	//  8 operation-lock
	//  9 registry-ca
	// 10 k0s-binary
	// 11 selinux-labels
	// 12 worker-bootstrap
	// 13 service-restart
	// 14 cloud-provider-reinstall
	// 15 uncordon
	// 16 verification
	// 17 node-labels
	// 18 mkeconfig-patch
}

func ExampleAddNodes() {
	ctx := context.Background()
	specs, err := hosts.LoadFile("hosts.yaml")
	if err != nil {
		log.Fatal(err)
	}
	keys, err := transport.KnownHosts("/etc/ssh/ssh_known_hosts")
	if err != nil {
		log.Fatal(err)
	}
	cluster, err := mke.Connect(ctx, mke.ConnectOptions{
		Kubeconfig: "/etc/mke/mke.kubeconf", SSH: &mke.SSH{HostKeys: keys},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()

	result, err := mke.AddNodes(ctx, mke.Options{
		Cluster: cluster, Hosts: specs,
		OnEvent: func(e mke.Event) { fmt.Println(e.N, e.Of, e.Stage, e.Kind, e.Message) },
	})
	if locked, ok := errors.AsType[*mke.LockedError](err); ok {
		log.Fatalf("%s has the lock until %s", locked.Lock.Client, locked.Lock.Expires)
	}
	if err != nil {
		log.Fatalf("%v (worth a retry: %t)", err, mke.Retryable(err))
	}
	for _, h := range result.Hosts {
		fmt.Println(h.Host, h.Name, h.Did)
	}
}
