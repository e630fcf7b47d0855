package operator

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/tools"
)

// startCluster starts an etcd in this process and the API server and the controllers that
// MKE's workloads need, on loopback, and returns how to reach it as an administrator.
func startCluster(t *testing.T) *rest.Config {
	t.Helper()
	programs := kubernetes(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	const token = "operator-test"
	port := freePort(t)
	host := fmt.Sprintf("https://127.0.0.1:%d", port)

	t.Log("starting etcd and kube-apiserver")
	start(t, programs["kube-apiserver"],
		"--etcd-servers="+startEtcd(t, filepath.Join(dir, "etcd")),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "--cert-dir="+dir,
		"--endpoint-reconciler-type=none", "--advertise-address=127.0.0.1",
		"--authorization-mode=RBAC", "--token-auth-file="+write("tokens", token+",admin,1,system:masters\n"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+write("sa.key", serviceAccountKey(t)), "--service-account-signing-key-file="+filepath.Join(dir, "sa.key"),
		"--disable-admission-plugins=ServiceAccount", "--shutdown-delay-duration=0s")

	cfg := &rest.Config{Host: host, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: 100, Burst: 200}
	c, err := rest.UnversionedRESTClientFor(unversioned(cfg))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the API server is ready", func(ctx context.Context) error {
		return c.Get().AbsPath("/readyz").Do(ctx).Error()
	})

	kubeconfig := write("kubeconfig", fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, user: test}}]
clusters: [{name: test, cluster: {server: %q, insecure-skip-tls-verify: true}}]
users: [{name: test, user: {token: %s}}]
`, host, token))
	start(t, programs["kube-controller-manager"], "--kubeconfig="+kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--controllers=deployment-controller,replicaset-controller,statefulset-controller,garbage-collector-controller")
	return cfg
}

// kubernetes returns the programs by name: those of the directory that
// MKESDK_SANDBOX_TOOLS names, else from the cache, built where they are missing.
func kubernetes(t *testing.T) map[string]string {
	t.Helper()
	if dir := os.Getenv("MKESDK_SANDBOX_TOOLS"); dir != "" {
		return map[string]string{
			"kube-apiserver":          filepath.Join(dir, "kube-apiserver"),
			"kube-controller-manager": filepath.Join(dir, "kube-controller-manager"),
		}
	}
	programs, err := tools.Builder{Say: func(line string) { t.Log(line) }}.Kubernetes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return programs
}

// startEtcd returns the URL of its clients.
func startEtcd(t *testing.T, dir string) string {
	t.Helper()
	cfg := embed.NewConfig()
	cfg.Dir, cfg.LogLevel, cfg.UnsafeNoFsync = dir, "fatal", true
	any := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{any}, []url.URL{any}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{any}, []url.URL{any}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.Server.HardStop()
		e.Close()
	})
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(30 * time.Second):
		t.Fatal("etcd is not ready after 30 seconds")
	}
	return "http://" + e.Clients[0].Addr().String()
}

// start runs a program until the test ends, and shows what it said if the test failed.
func start(t *testing.T, path string, args ...string) {
	t.Helper()
	var out tail
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGINT)
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			cmd.Process.Kill()
			<-done
		}
		if t.Failed() {
			t.Logf("%s said last:\n%s", filepath.Base(path), out.String())
		}
	})
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	data []byte
}

func (b *tail) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data = append(b.data, p...)
	b.data = b.data[max(0, len(b.data)-4000):]
	return len(p), nil
}

func (b *tail) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.data)
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// eventually tries until there is no error, and fails the test when the time is up.
func eventually(t *testing.T, limit time.Duration, what string, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	last := errors.New("it was not tried")
	for {
		if err := try(ctx); err == nil {
			return
		} else if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not so after %v: %s: %v", limit, what, last)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func unversioned(cfg *rest.Config) *rest.Config {
	cfg = dynamic.ConfigFor(cfg)
	cfg.GroupVersion = nil
	return cfg
}

// serviceAccountKey is a key that signs the tokens of service accounts.
func serviceAccountKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}
