package hosts

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// documented is the hosts.yaml of the documentation.
const documented = `hosts:
  - role: worker                  # or controller+worker
    installFlags: ["--profile=custom-profile", "--labels=zone=a"]   # optional
    privateAddress: 10.0.1.15     # optional
    ssh:
      address: 10.0.1.15
      user: root
      keyPath: ~/.ssh/key.pem
      port: 22
      bastion: {address: 1.2.3.4, user: root, keyPath: ~/.ssh/bastion.pem, port: 22}   # optional
`

func TestLoad(t *testing.T) {
	root := SSH{Address: "h1", User: "root", Port: 22}
	for name, c := range map[string]struct {
		text string
		want []Spec
	}{
		"documented": {documented, []Spec{{
			Role: Worker, InstallFlags: []string{"--profile=custom-profile", "--labels=zone=a"}, PrivateAddress: "10.0.1.15",
			SSH: SSH{Address: "10.0.1.15", User: "root", KeyPath: "~/.ssh/key.pem", Port: 22,
				Bastion: &SSH{Address: "1.2.3.4", User: "root", KeyPath: "~/.ssh/bastion.pem", Port: 22}},
		}}},
		"defaults":         {"hosts: [{role: worker, ssh: {address: h1}}]", []Spec{{Role: Worker, SSH: root}}},
		"byte order mark":  {"\ufeffhosts: [{role: worker, ssh: {address: h1}}]", []Spec{{Role: Worker, SSH: root}}},
		"lines of Windows": {"hosts:\r\n- role: worker\r\n  ssh:\r\n    address: h1\r\n", []Spec{{Role: Worker, SSH: root}}},
		"explicit null":    {"hosts: [{role: worker, installFlags: null, ssh: {address: h1, bastion: ~}}]", []Spec{{Role: Worker, SSH: root}}},
		"document markers": {"---\nhosts: [{role: worker, ssh: {address: h1}}]\n...\n", []Spec{{Role: Worker, SSH: root}}},
		"controller, aliased": {"hosts:\n- {role: controller+worker, privateInterface: eth1, ssh: {address: H1.Example., bastion: &b {address: b, user: jump}}}\n- {role: worker, ssh: {address: '[FD00:0::1]:2222', bastion: *b}}",
			[]Spec{
				{Role: ControllerWorker, PrivateInterface: "eth1", SSH: SSH{Address: "h1.example", User: "root", Port: 22, Bastion: &SSH{Address: "b", User: "jump", Port: 22}}},
				{Role: Worker, SSH: SSH{Address: "fd00::1", User: "root", Port: 2222, Bastion: &SSH{Address: "b", User: "jump", Port: 22}}},
			}},
	} {
		got, err := Load("hosts.yaml", []byte(c.text))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

// TestLoadProblems: each problem is named with its place, and all of them at once.
func TestLoadProblems(t *testing.T) {
	const ok = "ssh: {address: h1}"
	for name, c := range map[string]struct{ text, want string }{
		"empty":              {"", "h.yaml: it is empty: want a list of hosts under the key hosts"},
		"comments only":      {"# nothing\n---\n", "h.yaml: it is empty: want a list of hosts under the key hosts"},
		"empty list":         {"hosts: []", "h.yaml:1:8: hosts: it lists no host"},
		"hosts without list": {"hosts:\n", "h.yaml:1:1: hosts: it has no value (is what belongs to it indented deeper?)"},
		"no list":            {"hosts: {}", `h.yaml:1:8: hosts: want a list, got keys and values: begin each entry with "- "`},
		"list at the top":    {"- role: worker", `h.yaml:1:1: want the list under the key hosts: begin the file with "hosts:"`},
		"text":               {"hello", "h.yaml:1:1: want keys and values (hosts), got text"},
		"misspelt key":       {"host:\n- role: worker", `h.yaml:1:1: host: unknown field; did you mean "hosts"?`},
		"unknown key":        {"hosts: [{role: worker, " + ok + "}]\nfoo: 1", "h.yaml:2:1: foo: unknown field; known are hosts"},
		"tab":                {"hosts:\n  - role: worker\n\t  ssh: {address: h1}", "h.yaml:3:1: a tab in the indentation: YAML takes spaces only, replace it by spaces"},
		"not YAML":           {"hosts:\n  - a: [\n", "h.yaml:2: not YAML: did not find expected node content"},
		"binary":             {"hosts: \x00", "h.yaml: it holds binary data: not a hosts file"},
		"unknown anchor":     {"hosts: *a", "h.yaml: not YAML: unknown anchor 'a' referenced"},
		"two documents":      {"hosts: []\n---\nhosts: []\n", "h.yaml:3:1: a second document begins here: want one list of hosts"},
		"whole mke4.yaml":    {"apiVersion: mke.mirantis.com/v1alpha1\nkind: MkeConfig\nspec:\n  hosts: []", "h.yaml:1:1: this is a whole mke4.yaml, not a hosts.yaml: want only the hosts to act on, under the key hosts, written as below its spec.hosts"},
		"spec only":          {"spec:\n  hosts: []", "h.yaml:1:1: this is a whole mke4.yaml, not a hosts.yaml: want only the hosts to act on, under the key hosts, written as below its spec.hosts"},
		"key given twice":    {"hosts:\n- role: worker\n  role: worker\n  " + ok, "h.yaml:3:3: hosts[0].role: given twice, first in line 2"},
		"merge key":          {"hosts:\n- role: worker\n  ssh: {<<: {user: x}, address: h}", "h.yaml:3:9: hosts[0].ssh: merge keys and keys that are no text are not understood here: want one of the keys address, user, keyPath, port, bastion"},
		"several at once": {"hosts:\n- role: wroker\n  ssh: {adress: h1, port: '22'}\n- ssh: {address: h2, user: 0, port: 70000}",
			`h.yaml:2:9: hosts[0].role: unknown role "wroker": want worker or controller+worker; did you mean "worker"?` + "\n" +
				`h.yaml:3:9: hosts[0].ssh.adress: unknown field; did you mean "address"?` + "\n" +
				"h.yaml:3:27: hosts[0].ssh.port: want a number from 1 to 65535, got text: write it without quotes\n" +
				"h.yaml:4:3: hosts[1].role: missing: want worker or controller+worker\n" +
				`h.yaml:4:28: hosts[1].ssh.user: want text, got the number 0: write it in quotes, as "0"` + "\n" +
				"h.yaml:4:37: hosts[1].ssh.port: 70000 is no port: want a number from 1 to 65535"},
		"role of k0s":        {"hosts: [{role: controller, " + ok + "}]", `h.yaml:1:16: hosts[0].role: unknown role "controller": want worker or controller+worker; did you mean "controller+worker"?`},
		"role of others":     {"hosts: [{role: master, " + ok + "}]", `h.yaml:1:16: hosts[0].role: unknown role "master": want worker or controller+worker`},
		"no ssh":             {"hosts: [{role: worker}]", "h.yaml:1:9: hosts[0].ssh: missing: want at least ssh: {address: …}"},
		"no address":         {"hosts: [{role: worker, ssh: {user: root}}]", "h.yaml:1:29: hosts[0].ssh.address: missing: want an IP address or a host name"},
		"lost indentation":   {"hosts:\n- role: worker\n  ssh:\n  address: h1", "h.yaml:3:3: hosts[0].ssh: it has no value (is what belongs to it indented deeper?)\nh.yaml:4:3: hosts[0].address: unknown field; known are role, installFlags, privateAddress, privateInterface, ssh"},
		"entry is text":      {"hosts:\n- h1", "h.yaml:2:3: hosts[0]: want keys and values (role, installFlags, privateAddress, privateInterface, ssh), got text"},
		"number as address":  {"hosts: [{role: worker, ssh: {address: 10.0}}]", `h.yaml:1:39: hosts[0].ssh.address: want text, got the number 10.0: write it in quotes, as "10.0"`},
		"no IPv4 address":    {"hosts: [{role: worker, ssh: {address: 10.0.0.256}}]", `h.yaml:1:39: hosts[0].ssh.address: "10.0.0.256" is no address: want four numbers from 0 to 255 without leading zeros, if it is to be an IPv4 address`},
		"user in address":    {"hosts: [{role: worker, ssh: {address: root@h}}]", `h.yaml:1:39: hosts[0].ssh.address: "root@h" is no address: want it without the user, which has a field of its own`},
		"two ports":          {"hosts: [{role: worker, ssh: {address: 'h:22', port: 23}}]", `h.yaml:1:39: hosts[0].ssh.address: "h:22" holds port 22, but port says 23: give it once`},
		"octal port":         {"hosts: [{role: worker, ssh: {address: h, port: 022}}]", "h.yaml:1:48: hosts[0].ssh.port: 022 is no port: want a number from 1 to 65535"},
		"both private":       {"hosts: [{role: worker, privateAddress: 10.0.0.1, privateInterface: eth0, " + ok + "}]", "h.yaml:1:68: hosts[0]: both privateAddress and privateInterface are given: want only one of them"},
		"private is a name":  {"hosts: [{role: worker, privateAddress: h1, " + ok + "}]", `h.yaml:1:40: hosts[0].privateAddress: "h1" is no IP address`},
		"private loopback":   {"hosts: [{role: worker, privateAddress: 127.0.0.1, " + ok + "}]", `h.yaml:1:40: hosts[0].privateAddress: "127.0.0.1" cannot be reached from other hosts`},
		"private is a path":  {"hosts: [{role: worker, privateInterface: /dev/eth0, " + ok + "}]", `h.yaml:1:42: hosts[0].privateInterface: "/dev/eth0" is no network interface: want a name as eth0`},
		"twice by address":   {"hosts:\n- {role: worker, " + ok + "}\n- {role: worker, ssh: {address: H1., port: 23}}", "h.yaml:3:33: hosts[1].ssh.address: h1 is listed already, by hosts[0] in line 2: list each host once"},
		"twice by notation":  {"hosts:\n- {role: worker, ssh: {address: 'fd00::1'}}\n- {role: worker, ssh: {address: '[FD00:0::1]:22'}}", "h.yaml:3:33: hosts[1].ssh.address: fd00::1 is listed already, by hosts[0] in line 2: list each host once"},
		"private twice":      {"hosts:\n- {role: worker, privateAddress: 10.0.0.1, ssh: {address: h1}}\n- {role: worker, privateAddress: 10.0.0.1, ssh: {address: h2}}", "h.yaml:3:59: hosts[1].privateAddress: 10.0.0.1 is listed already, by hosts[0] in line 2: list each host once"},
		"endless bastions":   {"hosts: [{role: worker, ssh: {address: h1, bastion: &b {address: x, bastion: *b}}}]", "h.yaml:1:52: hosts[0].ssh" + strings.Repeat(".bastion", 9) + ": more than 8 bastions in a row"},
		"flags as text":      {"hosts: [{role: worker, installFlags: --debug, " + ok + "}]", `h.yaml:1:38: hosts[0].installFlags: want a list, got text: begin each entry with "- "`},
		"flag that collides": {"hosts:\n- role: worker\n  installFlags:\n  - --debug\n  - --data-dir=/x\n  " + ok, "h.yaml:5:5: hosts[0].installFlags[1]: --data-dir: it is set by the software and cannot be given: the data directory is that of the cluster: set spec.k8sProviderSpecs.dataDir in MkeConfig"},
		"broken label":       {"hosts: [{role: worker, installFlags: ['--labels=a=b,c'], " + ok + "}]", `h.yaml:1:39: hosts[0].installFlags[0]: --labels: "c" is no label: want key=value, several separated by commas`},
		"the key itself":     {"hosts: [{role: worker, ssh: {address: h, keyPath: \"-----BEGIN KEY-----\\nsecret\"}}]", "h.yaml:1:51: hosts[0].ssh.keyPath: this is the key itself: want the path of its file"},
		"empty user":         {"hosts: [{role: worker, ssh: {address: h, user: ''}}]", "h.yaml:1:48: hosts[0].ssh.user: empty"},
		"line break":         {"hosts: [{role: worker, ssh: {address: h, user: \"a\\nb\"}}]", "h.yaml:1:48: hosts[0].ssh.user: it holds a line break or a control character"},
	} {
		specs, err := Load("h.yaml", []byte(c.text))
		if err == nil {
			t.Errorf("%s: no error, %+v", name, specs)
			continue
		}
		if err.Error() != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, err, c.want)
		}
		for _, e := range unjoin(err) {
			if fe, ok := errors.AsType[*FileError](e); !ok || fe.File != "h.yaml" || fe.Problem == "" {
				t.Errorf("%s: %T is no *FileError", name, e)
			}
		}
	}
}

func TestLoadFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "hosts.yaml")
	_, err := LoadFile(name)
	if want := name + ": cannot read the hosts file: no such file or directory"; !errors.Is(err, fs.ErrNotExist) || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
	if _, err := LoadFile(dir); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a directory: %v", err)
	}
	if err := os.WriteFile(name, []byte(documented), 0o600); err != nil {
		t.Fatal(err)
	}
	if specs, err := LoadFile(name); err != nil || len(specs) != 1 {
		t.Errorf("%+v, %v", specs, err)
	}
	if err := os.WriteFile(name, []byte(strings.Repeat("#", maxFile+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadFile(name); err == nil || !strings.Contains(err.Error(), "larger than 8 MiB") {
		t.Errorf("a large file: %v", err)
	}
}

// FuzzLoad: whatever the text, it is either hosts that are sound or errors that
// name the file.
func FuzzLoad(f *testing.F) {
	for _, text := range []string{documented, "hosts: [{role: worker, ssh: {address: h1, bastion: &b {address: x, bastion: *b}}}]", "hosts:\n- &a [*a]", "kind: MkeConfig", "hosts: [{role: worker, installFlags: [--labels, a=b], ssh: {address: '[::1]:22'}}]", "\t", "? [a]\n: b"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		specs, err := Load("h.yaml", data)
		if err != nil {
			for _, e := range unjoin(err) {
				if _, ok := errors.AsType[*FileError](e); !ok {
					t.Errorf("%T: %v", e, e)
				}
			}
			return
		}
		if len(specs) == 0 {
			t.Error("no hosts and no error")
		}
		for _, s := range specs {
			host, port, err := splitAddress(s.SSH.Address)
			if !s.Role.Valid() || err != nil || host != s.SSH.Address || port != 0 || s.SSH.Port < 1 || s.SSH.Port > 65535 || s.SSH.User == "" || s.PrivateAddress != "" && s.PrivateInterface != "" {
				t.Errorf("accepted: %+v", s)
			}
			if err := CheckInstallFlags(s); err != nil {
				t.Errorf("accepted: %v", err)
			}
		}
	})
}
