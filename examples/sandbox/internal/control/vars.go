// Package control runs the control plane of one controller the way `k0s controller` does: its PKI, its etcd, its API server and controller manager, and the objects k0s itself puts into the cluster.
//
// The processes are real; what k0s does around them is played. Facts about the real one come from
// recordings of k0s v1.36.3+k0s.2 and from reading its source.
package control

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Where k0s keeps its things unless told otherwise.
const (
	DefaultDataDir    = "/var/lib/k0s"
	DefaultRunDir     = "/run/k0s"
	DefaultConfigPath = "/etc/k0s/k0s.yaml"
)

// DefaultToolsDir holds the kube-apiserver, kube-controller-manager and kubectl that the sandbox
// has built. EnvTools names an environment variable that replaces it.
const (
	DefaultToolsDir = "/usr/lib/mkesdk-sandbox"
	EnvTools        = "MKESDK_SANDBOX_TOOLS"
)

// Vars are the paths of one k0s, in the form in which `k0s status -o json` shows them.
type Vars struct {
	InvocationID               string
	AdminKubeConfigPath        string
	BinDir                     string
	CertRootDir                string
	DataDir                    string
	KubeletRootDir             string
	EtcdCertDir                string
	EtcdDataDir                string
	KineSocketPath             string
	KonnectivitySocketDir      string
	KubeletAuthConfigPath      string
	ManifestsDir               string
	RunDir                     string
	KonnectivityKubeConfigPath string
	OCIBundleDir               string
	DefaultStorageType         string
	RuntimeConfigPath          string
	StatusSocketPath           string
	StartupConfigPath          string
	HelmHome                   string
	HelmRepositoryCache        string
	HelmRepositoryConfig       string
}

// Paths are the paths a user can choose. An empty one is k0s's default, a relative one is taken
// from the working directory.
type Paths struct {
	DataDir, KubeletRootDir, StatusSocket, Config string
}

// NewVars derives all paths from the chosen ones. invocationID is new at each start of k0s.
func NewVars(p Paths, invocationID string) (Vars, error) {
	data, err := absolute(p.DataDir, DefaultDataDir)
	if err != nil {
		return Vars{}, fmt.Errorf("invalid datadir: %w", err)
	}
	kubelet, err := absolute(p.KubeletRootDir, filepath.Join(data, "kubelet"))
	if err != nil {
		return Vars{}, fmt.Errorf("invalid kubelet root dir: %w", err)
	}
	socket := p.StatusSocket
	if socket == "" {
		socket = filepath.Join(DefaultRunDir, "status.sock")
	}
	config := p.Config
	if config == "" {
		config = DefaultConfigPath
	}
	pki, helm := filepath.Join(data, "pki"), filepath.Join(data, "helmhome")
	return Vars{
		InvocationID:               invocationID,
		AdminKubeConfigPath:        filepath.Join(pki, "admin.conf"),
		BinDir:                     filepath.Join(data, "bin"),
		CertRootDir:                pki,
		DataDir:                    data,
		KubeletRootDir:             kubelet,
		EtcdCertDir:                filepath.Join(pki, "etcd"),
		EtcdDataDir:                filepath.Join(data, "etcd"),
		KineSocketPath:             filepath.Join(DefaultRunDir, "kine", "kine.sock:2379"),
		KonnectivitySocketDir:      filepath.Join(DefaultRunDir, "konnectivity-server"),
		KubeletAuthConfigPath:      filepath.Join(data, "kubelet.conf"),
		ManifestsDir:               filepath.Join(data, "manifests"),
		RunDir:                     DefaultRunDir,
		KonnectivityKubeConfigPath: filepath.Join(pki, "konnectivity.conf"),
		OCIBundleDir:               filepath.Join(data, "images"),
		DefaultStorageType:         "etcd",
		RuntimeConfigPath:          filepath.Join(DefaultRunDir, "k0s.yaml"),
		StatusSocketPath:           socket,
		StartupConfigPath:          config,
		HelmHome:                   helm,
		HelmRepositoryCache:        filepath.Join(helm, "cache"),
		HelmRepositoryConfig:       filepath.Join(helm, "repositories.yaml"),
	}, nil
}

// AuditLog is where the API server of a controller logs writes, one JSON event a line. The real
// k0s has none unless configured; tests of the sandbox read it.
func (v Vars) AuditLog() string { return filepath.Join(v.RunDir, "audit.log") }

// NodeName is the name under which a host's objects stand in the cluster: its host name in lower
// case.
func NodeName(hostname string) string { return strings.ToLower(strings.TrimSpace(hostname)) }

func absolute(path, instead string) (string, error) {
	if path == "" {
		path = instead
	}
	return filepath.Abs(path)
}
