package cluster

import (
	"bytes"
	"fmt"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// The shape of hosts.yaml, as the SDK reads it.
type hostsFile struct {
	Hosts []hostEntry `yaml:"hosts"`
}

type hostEntry struct {
	Role string  `yaml:"role"`
	SSH  sshSpec `yaml:"ssh"`
}

type sshSpec struct {
	Address string   `yaml:"address"`
	User    string   `yaml:"user"`
	KeyPath string   `yaml:"keyPath"`
	Port    int      `yaml:"port"`
	Bastion *sshSpec `yaml:"bastion,omitempty"`
}

// HostsYAML is the text of a hosts.yaml that lists those hosts as workers, with the operator's key
// in dir. all is where the hosts stand through which others are reached.
func HostsYAML(list, all []Plan, dir string) ([]byte, error) {
	spec := func(p Plan) *sshSpec {
		return &sshSpec{Address: p.Address, User: "root", KeyPath: filepath.Join(dir, KeyFile), Port: 22}
	}
	var f hostsFile
	for _, p := range list {
		e := hostEntry{Role: "worker", SSH: *spec(p)}
		for _, via := range all {
			if p.Via != "" && via.Name == p.Via {
				e.SSH.Bastion = spec(via)
			}
		}
		if p.Via != "" && e.SSH.Bastion == nil {
			return nil, fmt.Errorf("hosts.yaml: %s is reached through %s, which is not there", p.Name, p.Via)
		}
		f.Hosts = append(f.Hosts, e)
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(f); err != nil {
		return nil, fmt.Errorf("hosts.yaml: %w", err)
	}
	return out.Bytes(), nil
}
