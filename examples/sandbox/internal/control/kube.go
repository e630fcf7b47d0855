package control

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	_ "embed"
)

// auditPolicy logs who wrote what, without the contents.
//
//go:embed audit-policy.yaml
var auditPolicy []byte

// controllers are the parts of the controller manager that a cluster of the sandbox needs. All of
// them would take the memory of a host and seconds more to start.
const controllers = "bootstrap-signer-controller,certificatesigningrequest-approving-controller,certificatesigningrequest-cleaner-controller," +
	"certificatesigningrequest-signing-controller,clusterrole-aggregation-controller,daemonset-controller,deployment-controller,disruption-controller," +
	"garbage-collector-controller,job-controller,namespace-controller,node-lifecycle-controller,pod-garbage-collector-controller,replicaset-controller," +
	"root-ca-certificate-publisher-controller,serviceaccount-controller,statefulset-controller,taint-eviction-controller,token-cleaner-controller"

// nodeGrace is how long a node may be silent before it counts as not ready. The real one's is 50
// seconds; spec.controllerManager.extraArgs of k0s.yaml overrides it like any other argument.
const nodeGrace = "10s"

// apiServerGC lets the API server collect less often: it starts with a tenth less work than with
// the default.
const apiServerGC = "GOGC=150"

// apiServerArgs are the arguments k0s gives kube-apiserver, and the audit log of the sandbox.
func apiServerArgs(v Vars, s Spec) []string {
	pki := func(name string) string { return filepath.Join(v.CertRootDir, name) }
	args := map[string]string{
		"advertise-address":                       s.API.Address,
		"allow-privileged":                        "true",
		"anonymous-auth":                          "false",
		"api-audiences":                           "https://kubernetes.default.svc",
		"authorization-mode":                      "Node,RBAC",
		"client-ca-file":                          pki("ca.crt"),
		"enable-admission-plugins":                "NodeRestriction",
		"enable-bootstrap-token-auth":             "true",
		"etcd-cafile":                             filepath.Join(v.EtcdCertDir, "ca.crt"),
		"etcd-certfile":                           pki("apiserver-etcd-client.crt"),
		"etcd-keyfile":                            pki("apiserver-etcd-client.key"),
		"etcd-servers":                            etcdClientURL,
		"kubelet-certificate-authority":           pki("ca.crt"),
		"kubelet-client-certificate":              pki("apiserver-kubelet-client.crt"),
		"kubelet-client-key":                      pki("apiserver-kubelet-client.key"),
		"kubelet-preferred-address-types":         "InternalIP,ExternalIP,Hostname",
		"profiling":                               "false",
		"proxy-client-cert-file":                  pki("front-proxy-client.crt"),
		"proxy-client-key-file":                   pki("front-proxy-client.key"),
		"requestheader-allowed-names":             "front-proxy-client",
		"requestheader-client-ca-file":            pki("front-proxy-ca.crt"),
		"requestheader-extra-headers-prefix":      "X-Remote-Extra-",
		"requestheader-group-headers":             "X-Remote-Group",
		"requestheader-username-headers":          "X-Remote-User",
		"secure-port":                             strconv.Itoa(s.API.Port),
		"service-account-issuer":                  "https://kubernetes.default.svc",
		"service-account-jwks-uri":                "https://kubernetes.default.svc/openid/v1/jwks",
		"service-account-key-file":                pki("sa.pub"),
		"service-account-signing-key-file":        pki("sa.key"),
		"service-cluster-ip-range":                s.Network.ServiceCIDR,
		"shutdown-watch-termination-grace-period": "2s",
		"tls-cert-file":                           pki("server.crt"),
		"tls-cipher-suites":                       cipherSuites,
		"tls-min-version":                         "VersionTLS12",
		"tls-private-key-file":                    pki("server.key"),
		"v":                                       "1",
		// Not k0s's: the sandbox's tests read it.
		"audit-log-path":    v.AuditLog(),
		"audit-policy-file": auditPolicyFile(v),
	}
	if s.API.OnlyBindToAddress {
		args["bind-address"] = s.API.Address
	}
	maps.Copy(args, s.API.ExtraArgs)
	return flags(args, s.API.RawArgs...)
}

func auditPolicyFile(v Vars) string { return filepath.Join(v.RunDir, "audit-policy.yaml") }

// prepareAPIServer puts in place what the API server reads and writes outside the PKI.
func prepareAPIServer(v Vars, s Spec) error {
	if err := replaceFile(auditPolicyFile(v), auditPolicy, 0o644, -1); err != nil {
		return err
	}
	f, err := os.OpenFile(v.AuditLog(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return chown(v.AuditLog(), owner(s.InstallConfig.Users.APIServer))
}

// managerArgs are the arguments k0s gives kube-controller-manager, but for shorter times and
// fewer controllers. No node gets a range of pod addresses: the sandbox runs no pods.
func managerArgs(v Vars, s Spec) []string {
	pki := func(name string) string { return filepath.Join(v.CertRootDir, name) }
	args := map[string]string{
		"authentication-kubeconfig":        pki("ccm.conf"),
		"authorization-kubeconfig":         pki("ccm.conf"),
		"bind-address":                     "127.0.0.1",
		"client-ca-file":                   pki("ca.crt"),
		"cluster-name":                     "k0s",
		"cluster-signing-cert-file":        pki("ca.crt"),
		"cluster-signing-key-file":         pki("ca.key"),
		"controllers":                      controllers,
		"kubeconfig":                       pki("ccm.conf"),
		"leader-elect":                     "true",
		"leader-elect-lease-duration":      "6s",
		"leader-elect-renew-deadline":      "4s",
		"leader-elect-retry-period":        "1s",
		"node-monitor-grace-period":        nodeGrace,
		"node-monitor-period":              "1s",
		"node-startup-grace-period":        nodeGrace,
		"profiling":                        "false",
		"requestheader-client-ca-file":     pki("front-proxy-ca.crt"),
		"root-ca-file":                     pki("ca.crt"),
		"service-account-private-key-file": pki("sa.key"),
		"use-service-account-credentials":  "true",
		"v":                                "1",
	}
	maps.Copy(args, s.ControllerManager.ExtraArgs)
	return flags(args)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
