package k0s

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/control"
)

// flagValues are the flags that the stand-in acts on; all others are taken and written into the
// service, but change nothing.
type flagValues struct {
	dataDir, kubeletRootDir, statusSocket, config string

	tokenFile, kubeletExtraArgs string
	labels                      pairs
	taints, disable             []string
	cloudProvider               bool
	enableWorker, noTaints      bool
	single                      bool
}

// vars are the paths that the flags of this run give.
func (a *app) vars() (control.Vars, error) {
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return control.Vars{}, err
	}
	return control.NewVars(control.Paths{
		DataDir: a.p.dataDir, KubeletRootDir: a.p.kubeletRootDir, StatusSocket: a.p.statusSocket, Config: a.p.config,
	}, hex.EncodeToString(id[:]))
}

// pathFlags are on every command that looks at a k0s.
func (a *app) pathFlags(f *pflag.FlagSet) {
	f.StringVar(&a.p.dataDir, "data-dir", control.DefaultDataDir, "")
	f.StringVar(&a.p.statusSocket, "status-socket", "", "")
}

// debugFlags are on every command; k0s also has them where they do nothing.
func (a *app) debugFlags(f *pflag.FlagSet) {
	f.BoolP("debug", "d", false, "")
	f.String("debugListenOn", ":6060", "")
	f.BoolP("verbose", "v", false, "")
}

// workerFlags are what `k0s worker` takes.
func (a *app) workerFlags(f *pflag.FlagSet) {
	f.String("cri-socket", "", "")
	f.BoolVar(&a.p.cloudProvider, "enable-cloud-provider", false, "")
	f.Bool("ignore-pre-flight-checks", false, "")
	f.String("iptables-mode", "", "")
	f.StringVar(&a.p.kubeletExtraArgs, "kubelet-extra-args", "", "")
	f.StringVar(&a.p.kubeletRootDir, "kubelet-root-dir", "", "")
	f.Var(&a.p.labels, "labels", "")
	f.StringToStringP("logging", "l", logLevels(), "")
	f.String("profile", "default", "")
	f.StringSliceVar(&a.p.taints, "taints", nil, "")
	f.StringVar(&a.p.tokenFile, "token-file", "", "")
}

// controllerFlags are what `k0s controller` takes beyond a worker's.
func (a *app) controllerFlags(f *pflag.FlagSet) {
	f.Duration("api-server-stop-timeout", 0, "")
	a.configFlag(f)
	f.StringSliceVar(&a.p.disable, "disable-components", nil, "")
	f.Bool("enable-dynamic-config", false, "")
	f.Bool("enable-k0s-cloud-provider", false, "")
	f.Bool("enable-metrics-scraper", false, "")
	f.BoolVar(&a.p.enableWorker, "enable-worker", false, "")
	f.Var(&pairs{}, "feature-gates", "")
	f.Bool("init-only", false, "")
	f.Int("k0s-cloud-provider-port", 10258, "")
	f.Duration("k0s-cloud-provider-update-frequency", 120_000_000_000, "")
	f.String("kube-controller-manager-extra-args", "", "")
	f.BoolVar(&a.p.noTaints, "no-taints", false, "")
	f.BoolVar(&a.p.single, "single", false, "")
}

func (a *app) configFlag(f *pflag.FlagSet) {
	f.StringVarP(&a.p.config, "config", "c", control.DefaultConfigPath, "")
}

func logLevels() map[string]string {
	return map[string]string{
		"containerd": "info", "etcd": "info", "konnectivity-server": "1", "kube-apiserver": "1",
		"kube-controller-manager": "1", "kube-scheduler": "1", "kubelet": "1",
	}
}

// refuse gives an error for flags that would change what a k0s is and are not played.
func (a *app) refuse(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() != f.DefValue {
			return fmt.Errorf("--%s is not part of the stand-in", name)
		}
	}
	return nil
}

// pairs is a flag of key=value pairs; given several times, they add up.
type pairs map[string]string

// Set implements pflag.Value.
func (p *pairs) Set(s string) error {
	if *p == nil {
		*p = pairs{}
	}
	for pair := range strings.SplitSeq(s, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		k, v, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("malformed pair, expect string=string")
		}
		(*p)[strings.TrimSpace(k)] = strings.TrimSpace(v)
	}
	return nil
}

// String implements pflag.Value: the pairs in order.
func (p *pairs) String() string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(*p)) {
		out = append(out, k+"="+(*p)[k])
	}
	return strings.Join(out, ",")
}

// Type implements pflag.Value.
func (p *pairs) Type() string { return "mapStringString" }
