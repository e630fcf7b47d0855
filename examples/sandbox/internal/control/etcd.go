package control

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// etcdClientURL is where a k0s etcd answers clients: on the loopback, and nowhere else.
const etcdClientURL = "https://127.0.0.1:2379"

// cipherSuites is k0s's selection for TLS 1.2.
const cipherSuites = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256," +
	"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"

// etcdArgs are the arguments k0s gives etcd. hostname is the member's name unless the
// configuration has one: the host's, not lower-cased.
func etcdArgs(v Vars, s Spec, hostname string) map[string]string {
	pki := func(name string) string { return filepath.Join(v.EtcdCertDir, name) }
	args := map[string]string{
		"advertise-client-urls":       etcdClientURL,
		"auth-token":                  "jwt,pub-key=" + pki("jwt.pub") + ",priv-key=" + pki("jwt.key") + ",sign-method=RS512,ttl=10m",
		"cert-file":                   pki("server.crt"),
		"cipher-suites":               cipherSuites,
		"client-cert-auth":            "true",
		"data-dir":                    v.EtcdDataDir,
		"enable-pprof":                "false",
		"initial-advertise-peer-urls": s.PeerURL(),
		"key-file":                    pki("server.key"),
		"listen-client-urls":          etcdClientURL,
		"listen-peer-urls":            s.PeerURL(),
		"log-level":                   "info",
		"name":                        hostname,
		"peer-cert-file":              pki("peer.crt"),
		"peer-client-cert-auth":       "true",
		"peer-key-file":               pki("peer.key"),
		"peer-trusted-ca-file":        pki("ca.crt"),
		"tls-min-version":             "TLS1.2",
		"trusted-ca-file":             pki("ca.crt"),
	}
	for k, value := range s.Storage.Etcd.ExtraArgs {
		args[k] = value
	}
	return args
}

// prepareEtcd makes etcd's directory and gives what is etcd's to its user.
func prepareEtcd(v Vars, s Spec) error {
	if err := mkdir(v.EtcdDataDir, 0o700); err != nil {
		return err
	}
	uid := owner(s.InstallConfig.Users.Etcd)
	if err := chown(v.EtcdCertDir, uid); err != nil {
		return err
	}
	return filepath.WalkDir(v.EtcdDataDir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return chown(path, uid)
	})
}

// EtcdClient connects to the local etcd as k0s's own commands do. The error of a missing file is
// the file's, as k0s prints it.
func EtcdClient(v Vars) (*clientv3.Client, error) {
	base := filepath.Join(v.CertRootDir, "apiserver-etcd-client")
	cert, err := tls.LoadX509KeyPair(base+".crt", base+".key")
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(filepath.Join(v.EtcdCertDir, "ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return clientv3.New(clientv3.Config{
		Endpoints: []string{etcdClientURL},
		TLS:       &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: pool, MinVersion: tls.VersionTLS12},
		Logger:    zap.NewNop(),
	})
}

// member is what a controller knows of its own etcd.
type member struct {
	id   uint64
	name string
}

// waitEtcd waits until the local member votes and answers, and says which one it is.
func waitEtcd(ctx context.Context, v Vars) (member, error) {
	c, err := EtcdClient(v)
	if err != nil {
		return member{}, err
	}
	defer c.Close()
	var got member
	err = poll(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		st, err := c.Status(ctx, etcdClientURL)
		if err != nil {
			return err
		}
		if st.IsLearner {
			return fmt.Errorf("etcd member %x is still a learner", st.Header.MemberId)
		}
		list, err := c.MemberList(ctx)
		if err != nil {
			return err
		}
		for _, m := range list.Members {
			if m.ID == st.Header.MemberId && m.Name != "" {
				got = member{id: m.ID, name: m.Name}
				return nil
			}
		}
		return fmt.Errorf("etcd does not list its own member %x", st.Header.MemberId)
	})
	return got, err
}

// poll tries until it succeeds or the context ends. The error of the last try comes with it.
func poll(ctx context.Context, every time.Duration, try func(context.Context) error) error {
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(every):
		}
	}
}

// flags renders arguments sorted by name, as k0s hands them to a component.
func flags(args map[string]string, raw ...string) []string {
	out := make([]string, 0, len(args)+len(raw))
	for _, k := range sortedKeys(args) {
		out = append(out, "--"+strings.TrimPrefix(k, "--")+"="+args[k])
	}
	return append(out, raw...)
}
