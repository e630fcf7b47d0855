package mke

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/mkesdk/mkesdk/etcdverify"
	"github.com/mkesdk/mkesdk/transport"
	"github.com/mkesdk/mkesdk/transport/transporttest"
)

// A pki is an etcd CA with a certificate for the server and one for its client, in PEM.
type pki struct{ ca, server, serverKey, client, clientKey []byte }

func newPKI(t *testing.T) pki {
	t.Helper()
	template := func(name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2199, 1, 1, 0, 0, 0, 0, time.UTC),
			KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
			BasicConstraintsValid: true,
		}
	}
	sign := func(c, parent *x509.Certificate, by *ecdsa.PrivateKey) ([]byte, []byte, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if by == nil {
			by = key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
		if err != nil {
			t.Fatal(err)
		}
		keyDER, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), key
	}
	var p pki
	ca, server := template("etcd-ca"), template("etcd-server")
	ca.IsCA, server.IPAddresses = true, []net.IP{net.IPv4(127, 0, 0, 1)}
	var key *ecdsa.PrivateKey
	p.ca, _, key = sign(ca, ca, nil)
	p.server, p.serverKey, _ = sign(server, ca, key)
	p.client, p.clientKey, _ = sign(template("apiserver-etcd-client"), ca, key)
	return p
}

// raw lets a server answer in bytes: the messages of etcd are not worth a dependency.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error)   { return *v.(*[]byte), nil }
func (raw) Unmarshal(d []byte, v any) error { *v.(*[]byte) = d; return nil }
func (raw) Name() string                    { return "raw" }

// message makes a protobuf message of pairs: a field's number and its value.
func message(fields ...any) []byte {
	var b []byte
	for i := 0; i < len(fields); i += 2 {
		n := uint64(fields[i].(int))
		switch v := fields[i+1].(type) {
		case int:
			b = binary.AppendUvarint(binary.AppendUvarint(b, n<<3), uint64(v))
		case string:
			b = append(binary.AppendUvarint(binary.AppendUvarint(b, n<<3|2), uint64(len(v))), v...)
		case []byte:
			b = append(binary.AppendUvarint(binary.AppendUvarint(b, n<<3|2), uint64(len(v))), v...)
		}
	}
	return b
}

var header = message(1, 0xc1, 2, 0xa, 3, 17, 4, 2) // cluster, member, revision, term

// healthy are the answers of one of two members, the other of which is a learner.
func healthy() map[string][]byte {
	return map[string][]byte{
		"/etcdserverpb.Cluster/MemberList": message(1, header,
			2, message(1, 0xa, 2, "c1", 3, "https://10.0.0.1:2380", 4, "https://127.0.0.1:2379"),
			2, message(1, 0xb, 3, "https://10.0.0.2:2380", 5, 1)),
		"/etcdserverpb.Maintenance/Alarm":  message(1, header, 2, message(1, 0xb, 2, 1)),
		"/etcdserverpb.KV/Range":           message(1, header),
		"/etcdserverpb.Maintenance/Status": message(1, header, 2, "3.6.14", 3, 4096, 4, 0xa, 5, 99, 6, 2, 7, 98, 9, 2048, 12, 1<<31),
	}
}

// A pipeListener accepts connections that never leave the process.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// etcdHost is a host with an etcd member on its loopback that gives these answers. A
// question without one hangs.
func etcdHost(t *testing.T, answers map[string][]byte) (h *transporttest.Host, stop func()) {
	t.Helper()
	p := newPKI(t)
	own, err := tls.X509KeyPair(p.server, p.serverKey)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(p.ca)
	s := grpc.NewServer(
		grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{own}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12})),
		grpc.ForceServerCodec(raw{}),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			var question []byte
			if err := stream.RecvMsg(&question); err != nil {
				return err
			}
			method, _ := grpc.MethodFromServerStream(stream)
			answer, ok := answers[method]
			if !ok {
				<-stream.Context().Done()
				return stream.Context().Err()
			}
			return stream.SendMsg(&answer)
		}))
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	go func() { _ = s.Serve(l) }()
	h = transporttest.New(t, "root@10.0.0.1:22")
	for name, data := range map[string][]byte{"etcd/ca.crt": p.ca, "apiserver-etcd-client.crt": p.client, "apiserver-etcd-client.key": p.clientKey} {
		h.SetFile("/data/k0s/pki/"+name, transporttest.File{Data: string(data)})
	}
	h.HandleDial(func(_ context.Context, network, addr string) (net.Conn, error) {
		if network != "tcp" || addr != "127.0.0.1:2379" {
			t.Errorf("dialed %s %s", network, addr)
		}
		here, there := net.Pipe()
		select {
		case l.conns <- there:
			return here, nil
		case <-l.closed:
			return nil, syscall.ECONNREFUSED
		}
	})
	return h, s.Stop
}

// TestEtcdEvidence asks a member everything.
func TestEtcdEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, stop := etcdHost(t, healthy())
		defer stop()
		got, err := sshEtcd{}.Evidence(t.Context(), h, "/data/k0s")
		if err != nil {
			t.Fatal(err)
		}
		want := etcdverify.Evidence{
			At: got.At, Via: "root@10.0.0.1:22", ClusterID: 0xc1, AlarmsKnown: true,
			Members: []etcdverify.Member{
				{ID: 0xa, Name: "c1", PeerURLs: []string{"https://10.0.0.1:2380"}, Started: etcdverify.Yes, Learner: etcdverify.No},
				{ID: 0xb, PeerURLs: []string{"https://10.0.0.2:2380"}, Started: etcdverify.No, Learner: etcdverify.Yes},
			},
			Alarms: []etcdverify.Alarm{{MemberID: 0xb, Type: etcdverify.AlarmNoSpace}},
			Health: []etcdverify.Health{{
				Host: "root@10.0.0.1:22", Answered: true, Read: true, MemberID: 0xa, ClusterID: 0xc1, Leader: 0xa, Version: "3.6.14",
				RaftIndex: 99, RaftAppliedIndex: 98, DBSize: 4096, DBSizeInUse: 2048, DBQuota: 1 << 31,
			}},
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		for _, call := range h.Calls() {
			if call.Effect != transport.EffectNone {
				t.Errorf("ran %s, which may change something", call.Command)
			}
		}
	})
}

// TestEtcdNoQuorum asks a member that answers only what it can say alone. It takes the
// time of one question.
func TestEtcdNoQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := healthy()
		delete(answers, "/etcdserverpb.Cluster/MemberList")
		delete(answers, "/etcdserverpb.Maintenance/Alarm")
		delete(answers, "/etcdserverpb.KV/Range")
		h, stop := etcdHost(t, answers)
		defer stop()
		start := time.Now()
		e, err := sshEtcd{}.Evidence(t.Context(), h, "/data/k0s")
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d > etcdCall+time.Second {
			t.Errorf("it took %s", d)
		}
		health := e.Health[0]
		if len(e.Members) != 0 || e.AlarmsKnown || health.Read || !health.Answered || health.MemberID != 0xa {
			t.Errorf("evidence %+v", e)
		}
		for _, s := range []string{e.ListError, e.AlarmError, health.ReadError} {
			if s != "no answer within 5s" {
				t.Errorf("reason %q", s)
			}
		}
		err = etcdverify.Operational(e)
		if found, ok := errors.AsType[*etcdverify.Error](err); !ok || found.Topic != etcdverify.TopicNoQuorum {
			t.Errorf("error %v", err)
		}
	})
}

// TestEtcdUnreachable tells a member that is down, which is evidence, from a host that
// cannot be asked.
func TestEtcdUnreachable(t *testing.T) {
	lost := &net.OpError{Op: "dial", Net: "tcp", Err: transport.ErrConnectionLost}
	down := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for name, tt := range map[string]struct {
		dial   error
		remove string
		want   string
	}{
		"member down":     {down, "", ""},
		"connection lost": {lost, "", "connection lost"},
		"no client key":   {nil, "/data/k0s/pki/apiserver-etcd-client.key", "apiserver-etcd-client.key"},
		"no ca":           {nil, "/data/k0s/pki/etcd/ca.crt", "etcd/ca.crt"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, stop := etcdHost(t, healthy())
				defer stop()
				if tt.remove != "" {
					h.RemoveFile(tt.remove)
				}
				if tt.dial != nil {
					h.HandleDial(func(context.Context, string, string) (net.Conn, error) { return nil, tt.dial })
				}
				e, err := sshEtcd{}.Evidence(t.Context(), h, "/data/k0s")
				if tt.want == "" {
					if err != nil || !strings.Contains(e.ListError, "refused") || !strings.Contains(e.Health[0].StatusError, "refused") {
						t.Errorf("evidence %+v, %v", e, err)
					}
					return
				}
				if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "10.0.0.1") {
					t.Errorf("error %v, want %q", err, tt.want)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		h, stop := etcdHost(t, nil)
		defer stop()
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("enough")
		cancel(cause)
		if _, err := (sshEtcd{}).Evidence(ctx, h, "/data/k0s"); !errors.Is(err, cause) && !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled question gives %v", err)
		}
	})
}
