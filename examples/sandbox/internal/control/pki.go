package control

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// leaf is one certificate of a controller. Its files are <name>.crt (0644) and <name>.key (0640)
// below the PKI directory; conf also wants a kubeconfig made of it.
type leaf struct {
	name, ca string
	req      request
	owner    func(SystemUsers) string
	conf     os.FileMode
}

func root(SystemUsers) string            { return "root" }
func apiServerUser(u SystemUsers) string { return u.APIServer }
func schedulerUser(u SystemUsers) string { return u.Scheduler }
func etcdUser(u SystemUsers) string      { return u.Etcd }

// etcdLeaves and kubeLeaves are the certificates k0s makes, as its recorded file list has them. The
// two that others than k0s's own components use, those of etcd's clients and of the administrator,
// have keys of k0s's kind.
func etcdLeaves(s Spec) []leaf {
	local := []string{"localhost", "127.0.0.1"}
	peer := s.Storage.Etcd.PeerAddress
	return []leaf{
		{name: "etcd/server", ca: "etcd/ca", req: request{cn: "etcd-server", org: "etcd-server", hosts: local, quick: true}, owner: etcdUser},
		{name: "etcd/peer", ca: "etcd/ca", req: request{cn: peer, org: peer, hosts: []string{peer}, quick: true}, owner: etcdUser},
		{name: "apiserver-etcd-client", ca: "etcd/ca", req: request{cn: "apiserver-etcd-client", org: "apiserver-etcd-client", hosts: local}, owner: apiServerUser},
	}
}

func kubeLeaves(serverNames []string) []leaf {
	return []leaf{
		{name: "server", ca: "ca", req: request{cn: "kubernetes", org: "kubernetes", hosts: serverNames, quick: true}, owner: apiServerUser},
		{name: "admin", ca: "ca", req: request{cn: "kubernetes-admin", org: "system:masters"}, owner: root, conf: 0o600},
		{name: "ccm", ca: "ca", req: request{cn: "system:kube-controller-manager", org: "system:kube-controller-manager", quick: true}, owner: apiServerUser, conf: 0o600},
		{name: "front-proxy-client", ca: "front-proxy-ca", req: request{cn: "front-proxy-client", org: "front-proxy-client", quick: true}, owner: apiServerUser},
		{name: "apiserver-kubelet-client", ca: "ca", req: request{cn: "apiserver-kubelet-client", org: "system:masters", quick: true}, owner: apiServerUser},
		{name: "k0s-api", ca: "ca", req: request{cn: "k0s-api", org: "kubernetes", hosts: serverNames, quick: true}, owner: apiServerUser},
		{name: "scheduler", ca: "ca", req: request{cn: "system:kube-scheduler", org: "system:kube-scheduler", quick: true}, owner: schedulerUser, conf: 0o600},
	}
}

// serverNames are the names and addresses the API server answers to.
func serverNames(s Spec) []string {
	names := []string{
		"kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc." + s.Network.ClusterDomain, "localhost", "127.0.0.1", "10.96.0.1",
	}
	if ip, _, err := net.ParseCIDR(s.Network.ServiceCIDR); err == nil && ip.To4() != nil {
		first := ip.To4()
		first[3]++
		names[len(names)-1] = first.String()
	}
	if ext := s.API.ExternalAddress; ext != "" {
		if host, _, err := net.SplitHostPort(ext); err == nil {
			ext = host
		}
		names = append(names, ext)
	}
	names = append(append(names, s.API.Address), s.API.SANs...)
	if addrs, err := net.InterfaceAddrs(); err == nil {
		for _, a := range addrs {
			if ip, ok := a.(*net.IPNet); ok {
				names = append(names, ip.IP.String())
			}
		}
	}
	return names
}

// etcdPKI makes what etcd and its clients need. Certificate authorities that are there are kept,
// all other certificates are made anew at each start, as k0s does.
func etcdPKI(v Vars, s Spec) error {
	ca, err := ensureAuthority(filepath.Join(v.EtcdCertDir, "ca"), "etcd-ca")
	if err != nil {
		return err
	}
	jobs := []func() error{func() error { return ensureKeyPair(filepath.Join(v.EtcdCertDir, "jwt"), -1) }}
	for _, l := range etcdLeaves(s) {
		jobs = append(jobs, func() error { return l.write(v, s, ca, nil) })
	}
	return together(jobs)
}

// kubePKI makes what the API server and its clients need.
func kubePKI(v Vars, s Spec) error {
	cas := map[string]*authority{}
	for name, cn := range map[string]string{"ca": "kubernetes-ca", "front-proxy-ca": "kubernetes-front-proxy-ca"} {
		ca, err := ensureAuthority(filepath.Join(v.CertRootDir, name), cn)
		if err != nil {
			return err
		}
		cas[name] = ca
	}
	jobs := []func() error{func() error {
		return ensureKeyPair(filepath.Join(v.CertRootDir, "sa"), owner(s.InstallConfig.Users.APIServer))
	}}
	for _, l := range kubeLeaves(serverNames(s)) {
		jobs = append(jobs, func() error { return l.write(v, s, cas[l.ca], cas["ca"]) })
	}
	return together(jobs)
}

// write issues the certificate and puts its files in place.
func (l leaf) write(v Vars, s Spec, ca, cluster *authority) error {
	cert, key, err := ca.issue(l.req)
	if err != nil {
		return err
	}
	base, uid := filepath.Join(v.CertRootDir, l.name), owner(l.owner(s.InstallConfig.Users))
	if err := replaceFile(base+".key", key, 0o640, uid); err != nil {
		return err
	}
	if err := replaceFile(base+".crt", cert, 0o644, uid); err != nil {
		return err
	}
	if l.conf == 0 {
		return nil
	}
	conf, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"local": {Server: s.LocalURL(), CertificateAuthorityData: cluster.certPEM}},
		Contexts:       map[string]*clientcmdapi.Context{"Default": {Cluster: "local", AuthInfo: "user"}},
		CurrentContext: "Default",
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"user": {ClientCertificateData: cert, ClientKeyData: key}},
	})
	if err != nil {
		return fmt.Errorf("%s.conf: %w", l.name, err)
	}
	return replaceFile(base+".conf", conf, l.conf, uid)
}

// owner is the number of a user that files are to belong to: root's where there is no such user.
func owner(name string) int {
	n, _ := uid(name)
	return n
}

// together runs the jobs at once and gives the first error.
func together(jobs []func() error) error {
	errs := make(chan error, len(jobs))
	var wg sync.WaitGroup
	for _, job := range jobs {
		wg.Go(func() { errs <- job() })
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
