package hoststest_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"maps"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/hosts/hoststest"
)

const (
	k0sVersion = "v1.36.3+k0s.2"
	server     = "https://10.99.0.11:6443"
	secret     = "abcdef.0123456789abcdef"
)

// certificate makes the certificate of a CA.
func certificate(t *testing.T, serial int64) string {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "kubernetes-ca"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, pub, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// machines are hosts of every kind that the script looks at differently.
func machines(t *testing.T) map[string]hoststest.Machine {
	t.Helper()
	ca, other := certificate(t, 1), certificate(t, 2)
	token, err := hoststest.Token([]byte(ca), server, secret)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]hoststest.Machine{}

	clean := hoststest.Ubuntu("H1.example", "10.99.0.21")
	clean.Gateway = "10.99.0.1"
	clean.Listening = []string{"0.0.0.0:22", "127.0.0.53:53", "[::]:22", "[fd00::2]:10250"}
	all["clean"] = clean

	m := clean
	m.MemoryMax, m.CPUMax, m.SwapKB = "1073741824", "150000 100000", 2048
	m.SELinux, m.SELinuxPolicy, m.AppArmor = "enforcing", "targeted", false
	m.Addresses = append(slices.Clone(m.Addresses), hoststest.Address{Interface: "eth0", Prefix: "fd00::2/64"})
	all["limited by a cgroup, SELinux enforcing"] = m

	m = clean
	m.Cgroup, m.SELinux = "hybrid", "permissive"
	all["hybrid cgroups, SELinux permissive"] = m
	m.Cgroup = "v1"
	all["cgroup v1"] = m

	m = clean
	m.MachineID, m.BootID, m.Gateway, m.Addresses = "", "", "", nil
	m.Files = map[string]string{"/usr/lib/os-release": "ID=\"rhel\"\nVERSION_ID='9.6'"}
	all["os-release below /usr/lib, no machine-id, no address"] = m
	m.Files = nil
	all["no os-release"] = m

	binary := clean.WithK0s(k0sVersion)
	all["binary only"] = binary
	m = binary
	m.K0sVersion = ""
	all["a binary that does not run"] = m
	all["token of a reset host"] = binary.WithFile("/etc/k0s/k0stoken", token)
	all["empty token"] = binary.WithFile("/etc/k0s/k0stoken", "")

	m = binary
	m.Services = map[string]string{"k0sworker.service": "failed", "k0scontroller.service": "inactive"}
	all["reset after a stop that failed"] = m

	worker := binary.WithService("worker", "active", "--data-dir=/var/lib/k0s", "--token-file=/etc/k0s/token").
		WithFile("/var/lib/k0s/kubelet.conf", hoststest.Kubeconfig([]byte(ca), server)).
		WithFile("/var/lib/k0s/kubelet/pki/kubelet.crt", "x").
		WithFile("/run/k0s/status.sock", "x").
		WithFile("/etc/cni/net.d/10-test.conflist", "{}")
	worker.StatusRole = "worker"
	all["worker"] = worker

	m = worker
	m.Services = maps.Clone(m.Services)
	m.Services["firewalld.service"], m.Services["nm-cloud-setup.timer"] = "active", "active"
	m.StatusRole = ""
	all["starting worker, firewalld"] = m

	all["worker that waits for its CA"] = binary.WithService("worker", "activating", "--token-file=/etc/k0s/k0stoken").
		WithFile("/etc/k0s/k0stoken", token)
	all["worker whose token is gone, another left"] = binary.WithService("worker", "active", "--token-file=/etc/k0s/token").
		WithFile("/etc/k0s/k0stoken", token)
	all["worker with a broken token"] = binary.WithService("worker", "active").WithFile("/etc/k0s/k0stoken", "bm90IGd6aXA=")
	all["kubelet.conf without a CA"] = binary.WithService("worker", "active").WithFile("/var/lib/k0s/kubelet.conf", "apiVersion: v1\n")

	all["service without a binary"] = clean.WithService("worker", "failed")
	m = worker.WithFile("/etc/systemd/system/k0sworker.service", "[Unit]\n")
	all["unit without a command"] = m
	m = worker.WithFile("/etc/systemd/system/k0sworker.service.d/10.conf", "[Service]\nEnvironment=TOKEN="+secret+"\nExecStart=\nExecStart=/opt/k0s worker --token-file=/etc/k0s/other \\\n --data-dir=/data\n").
		WithFile("/opt/k0s", "binary")
	all["drop-in"] = m

	all["controller, odd paths, two CAs"] = binary.
		WithService("controller", "failed", "--enable-worker", `"--data-dir=/srv/k0s\x20data"`, "--kubelet-root-dir", "/srv/kubelet").
		WithFile("/srv/k0s data/pki/ca.crt", ca).
		WithFile("/srv/k0s data/kubelet.conf", hoststest.Kubeconfig([]byte(other), server)).
		WithFile("/srv/k0s data/etcd/member/snap/db", "x").WithFile("/srv/kubelet/a", "x")
	all["both services"] = worker.WithService("controller", "inactive")

	m = binary.WithFile("/var/lib/k0s/pki/etcd/ca.crt", "x").WithFile("/var/lib/k0s/etcd/member/", "").WithFile("/var/lib/k0s/images/a.tar", "x")
	m.Mounts = []string{"/var/lib/k0s", "/var/lib/k0s/kubelet/pods/1 2/volumes", "/run/k0s/containerd/x", "/mnt"}
	all["half reset, mounts"] = m
	all["images put there beforehand"] = binary.WithFile("/var/lib/k0s/images/a.tar", "x").WithFile("/var/lib/k0s/lost+found/", "")
	m = binary
	m.DataDir, m.KubeletRootDir = "/mnt/data", "/mnt/kubelet"
	all["other directories asked for"] = m.WithFile("/mnt/data/x", "x")

	for status, name := range map[string]string{"0": "started", "3": "stopped", "32": "crashed"} {
		m = binary.WithFile("/etc/init.d/k0sworker", "#!/sbin/openrc-run\nsupervisor=supervise-daemon\ncommand=\"/usr/local/bin/k0s\"\ncommand_args=\"'worker' '--data-dir=/srv/k0s' '--token-file=/etc/k0s/token' \"\n")
		m.Init, m.Services = "openrc", map[string]string{"k0sworker": status}
		all["OpenRC, "+name] = m
	}
	m.Init = "sshd"
	all["neither systemd nor OpenRC"] = m
	return all
}
