package control

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// defaults is the configuration that the real k0s reports for an empty one. A null stands for an
// optional field and only keeps its place in the order in which k0s prints them.
//
//go:embed defaults.json
var defaults []byte

// Config is a k0s configuration with all defaults filled in.
type Config struct {
	// JSON is the whole of it, fields in k0s's own order.
	JSON json.RawMessage
	// Spec holds the fields the stand-in acts on.
	Spec Spec
}

// Spec is the part of a k0s configuration that the stand-in acts on.
type Spec struct {
	API struct {
		Address           string            `json:"address"`
		OnlyBindToAddress bool              `json:"onlyBindToAddress"`
		ExternalAddress   string            `json:"externalAddress"`
		ExtraArgs         map[string]string `json:"extraArgs"`
		RawArgs           []string          `json:"rawArgs"`
		K0sAPIPort        int               `json:"k0sApiPort"`
		Port              int               `json:"port"`
		SANs              []string          `json:"sans"`
	} `json:"api"`
	ControllerManager struct {
		ExtraArgs map[string]string `json:"extraArgs"`
	} `json:"controllerManager"`
	Storage struct {
		Type string `json:"type"`
		Etcd struct {
			PeerAddress string            `json:"peerAddress"`
			ExtraArgs   map[string]string `json:"extraArgs"`
			RawArgs     []string          `json:"rawArgs"`
		} `json:"etcd"`
	} `json:"storage"`
	Network struct {
		PodCIDR       string `json:"podCIDR"`
		ServiceCIDR   string `json:"serviceCIDR"`
		ClusterDomain string `json:"clusterDomain"`
	} `json:"network"`
	InstallConfig struct {
		Users SystemUsers `json:"users"`
	} `json:"installConfig"`
}

// LoadConfig reads the configuration file. The default file may be missing, any other must be
// there, as with the real k0s.
func LoadConfig(path string) (Config, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && path == DefaultConfigPath {
		data, err = nil, nil
	}
	if err != nil {
		return Config{}, err
	}
	c, err := ParseConfig(data)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// ParseConfig lays a configuration over the defaults.
func ParseConfig(data []byte) (Config, error) {
	var base, user yaml.Node
	if err := yaml.Unmarshal(defaults, &base); err != nil {
		return Config{}, fmt.Errorf("the built-in defaults: %w", err)
	}
	// Into plain values first: that refuses aliases that contain themselves or grow without bound.
	var plain any
	if err := errors.Join(yaml.Unmarshal(data, &plain), yaml.Unmarshal(data, &user)); err != nil {
		return Config{}, err
	}
	root := base.Content[0]
	if user.Kind == yaml.DocumentNode {
		if user.Content[0].Kind != yaml.MappingNode {
			return Config{}, errors.New("not a mapping")
		}
		merge(root, user.Content[0])
	}
	fillAddresses(root)
	var b bytes.Buffer
	if err := writeJSON(&b, root); err != nil {
		return Config{}, err
	}
	c := Config{JSON: b.Bytes()}
	var typed struct{ Spec *Spec }
	typed.Spec = &c.Spec
	if err := json.Unmarshal(c.JSON, &typed); err != nil {
		return Config{}, err
	}
	return c, nil
}

// Validate gives what keeps a controller from running with this configuration. Commands that only
// look at a host do not ask.
func (s Spec) Validate() error {
	var errs []error
	if _, err := netip.ParseAddr(s.API.Address); err != nil {
		errs = append(errs, fmt.Errorf("spec: api: address: Invalid value: %q: invalid IP address", s.API.Address))
	}
	if s.Storage.Type != "etcd" {
		errs = append(errs, fmt.Errorf("spec: storage: type: %q is not part of the stand-in, only etcd", s.Storage.Type))
	}
	if len(errs) > 0 {
		return fmt.Errorf("invalid node config: %w", errors.Join(errs...))
	}
	return nil
}

// APIURL is where workers find the API server, JoinURL where controllers find the join API.
func (s Spec) APIURL() string  { return s.url(s.API.Port) }
func (s Spec) JoinURL() string { return s.url(s.API.K0sAPIPort) }

func (s Spec) url(port int) string {
	host := net.JoinHostPort(s.API.Address, strconv.Itoa(port))
	if ext := s.API.ExternalAddress; ext != "" {
		if host = ext; !hasPort(ext) {
			host = net.JoinHostPort(ext, strconv.Itoa(port))
		}
	}
	return "https://" + host
}

func hasPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	return err == nil && port != ""
}

// PeerURL is what this controller's etcd listens on for its peers.
func (s Spec) PeerURL() string {
	return "https://" + net.JoinHostPort(s.Storage.Etcd.PeerAddress, "2380")
}

// LocalURL is where a controller's own components find its API server.
func (s Spec) LocalURL() string {
	if s.API.OnlyBindToAddress {
		return "https://" + net.JoinHostPort(s.API.Address, strconv.Itoa(s.API.Port))
	}
	return "https://localhost:" + strconv.Itoa(s.API.Port)
}

// fillAddresses does what k0s does with an address that is not given: the first one the host has.
func fillAddresses(root *yaml.Node) {
	for _, path := range [][]string{{"spec", "api", "address"}, {"spec", "storage", "etcd", "peerAddress"}} {
		n := root
		for _, key := range path {
			if n = field(n, key); n == nil {
				break
			}
		}
		if n == nil || n.Tag != "!!null" && n.Value != "" {
			continue
		}
		n.Kind, n.Tag, n.Value = yaml.ScalarNode, "!!str", firstAddress()
	}
}

func firstAddress() string {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() {
			return ip.IP.String()
		}
	}
	return ""
}

func field(m *yaml.Node, key string) *yaml.Node {
	if m.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// merge lays over's fields over base's, mapping by mapping; anything else replaces what was there.
func merge(base, over *yaml.Node) {
	for i := 0; i+1 < len(over.Content); i += 2 {
		key, value := over.Content[i], over.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		old := field(base, key.Value)
		switch {
		case old == nil:
			base.Content = append(base.Content, key, value)
		case old.Kind == yaml.MappingNode && value.Kind == yaml.MappingNode:
			merge(old, value)
		default:
			*old = *value
		}
	}
}

// writeJSON writes a YAML tree as JSON in the order it stands; nulls in mappings are left out.
func writeJSON(b *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.AliasNode:
		return writeJSON(b, n.Alias)
	case yaml.MappingNode:
		b.WriteByte('{')
		sep := ""
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i+1].Tag == "!!null" {
				continue
			}
			name, err := json.Marshal(n.Content[i].Value)
			if err != nil {
				return err
			}
			b.WriteString(sep + string(name) + ":")
			if err := writeJSON(b, n.Content[i+1]); err != nil {
				return err
			}
			sep = ","
		}
		b.WriteByte('}')
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, e := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeJSON(b, e); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	default:
		var v any
		if err := n.Decode(&v); err != nil {
			return err
		}
		out, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("line %d: %w", n.Line, err)
		}
		b.WriteString(strings.TrimSpace(string(out)))
	}
	return nil
}
