package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/mke"
	"github.com/mkesdk/mkesdk/transport"
)

// testExitRunbook has a learner in etcd that somebody has left there: what to do is in the runbook.
func testExitRunbook(t *testing.T, b *bed) {
	etcd := b.etcd()
	added, err := etcd.MemberAddAsLearner(t.Context(), []string{"https://10.99.0.99:2380"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, err := etcd.MemberRemove(context.WithoutCancel(t.Context()), added.Member.ID); err != nil {
			t.Error(err)
		}
	}()
	w := b.world("h1", "c1")
	args := []string{"node", "add", "--hosts-path", b.HostsYAMLOf("h1")}
	r := b.run(args...)
	r.ended(t, 3)
	says(t, "the error", r.err, "etcd-state", "learner", "runbook topic ", "do not repeat it", "nothing was changed")

	r = b.run(append(args, "-o", "json")...)
	r.ended(t, 3)
	_, last := r.json(t)
	if e := last.Failure; e == nil || e.Retryable || e.Changed || len(e.Runbook) != 1 || e.Runbook[0].Topic == "" || e.Runbook[0].Text == "" {
		t.Errorf("result: %+v", e)
	}
	b.unchanged(w, mkectlAgent)
}

// etcd is a client of the controller's etcd member, through SSH.
func (b *bed) etcd() *clientv3.Client {
	b.t.Helper()
	keys, err := transport.KnownHosts(b.KnownHosts())
	if err != nil {
		b.t.Fatal(err)
	}
	ssh := &mke.SSH{HostKeys: keys, NetDial: b.Dial}
	conn, err := ssh.Dial(b.t.Context(), hosts.SSH{Address: b.Host("c1").Address(), KeyPath: b.Key()})
	if err != nil {
		b.t.Fatal(err)
	}
	pki := func(name string) []byte { return []byte(b.Host("c1").Exec("cat", "/var/lib/k0s/pki/"+name)) }
	own, err := tls.X509KeyPair(pki("apiserver-etcd-client.crt"), pki("apiserver-etcd-client.key"))
	if err != nil {
		b.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pki("etcd/ca.crt"))
	here, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	go forward(b.t.Context(), here, conn, "127.0.0.1:2379")
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"https://" + here.Addr().String()}, Logger: zap.NewNop(),
		TLS: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		_ = client.Close() // ends the requests that are under way
		_ = here.Close()
		_ = conn.Close()
	})
	return client
}

// forward joins every connection to here with addr as the host behind conn sees it.
func forward(ctx context.Context, here net.Listener, conn transport.Conn, addr string) {
	for {
		near, err := here.Accept()
		if err != nil {
			return // closed
		}
		far, err := conn.Dial(ctx, "tcp", addr)
		if err != nil {
			_ = near.Close()
			continue
		}
		for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
			go func() {
				_, _ = io.Copy(pair[0], pair[1]) // ends with either side
				_ = pair[0].Close()
			}()
		}
	}
}
