package hoststest

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// paths are what a service's command line says, with what it leaves out.
type paths struct {
	binary, dataDir, kubeletRoot, token string
}

// serviceNames are the services of k0s.
func serviceNames() []string { return []string{"k0scontroller", "k0sworker"} }

// file is the unit file or script of a service, empty if there is none.
func (m Machine) file(service string) string {
	places := []string{"/etc/init.d/" + service}
	if m.Init == "systemd" {
		places = nil
		for _, d := range []string{"/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"} {
			places = append(places, d+"/systemd/system/"+service+".service")
		}
	}
	for _, f := range places {
		if _, ok := m.Files[f]; ok {
			return f
		}
	}
	return ""
}

// command is the command line of a service.
func (m Machine) command(service string) string {
	text := m.Files[m.file(service)]
	if m.Init != "systemd" {
		prog, args := "", ""
		for line := range strings.Lines(text) {
			line = strings.TrimRight(strings.TrimLeft(line, " \t"), "\n")
			if v, ok := strings.CutPrefix(line, "command="); ok {
				prog = v
			}
			if v, ok := strings.CutPrefix(line, "command_args="); ok {
				args = strings.TrimSuffix(strings.TrimPrefix(strings.TrimRight(v, " \t"), `"`), `"`)
			}
		}
		return prog + " " + args
	}
	for _, dir := range []string{"/etc", "/run"} {
		for _, f := range slices.Sorted(maps.Keys(m.Files)) {
			if path.Dir(f) == dir+"/systemd/system/"+service+".service.d" && strings.HasSuffix(f, ".conf") {
				text += "\n" + m.Files[f]
			}
		}
	}
	last := ""
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", "")) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "ExecStart="); ok && v != "" {
			last = v
		}
	}
	return last
}

func (m Machine) paths() paths {
	p := paths{dataDir: m.DataDir, kubeletRoot: m.KubeletRootDir}
	for _, s := range serviceNames() {
		if m.file(s) == "" {
			continue
		}
		words := strings.Fields(m.command(s))
		for i, w := range words {
			words[i] = strings.ReplaceAll(strings.NewReplacer(`"`, "", `'`, "").Replace(w), `\x20`, " ")
		}
		for i, w := range words {
			name, value, ok := strings.Cut(w, "=")
			if !ok && i+1 < len(words) {
				value = words[i+1]
			}
			switch {
			case i == 0:
				p.binary = strings.TrimLeft(w, "-@:+!")
			case value == "":
			case name == "--data-dir":
				p.dataDir = value
			case name == "--kubelet-root-dir":
				p.kubeletRoot = value
			case name == "--token-file":
				p.token = value
			}
		}
		break
	}
	or := func(v *string, otherwise string) {
		if *v == "" {
			*v = otherwise
		}
	}
	or(&p.dataDir, "/var/lib/k0s")
	or(&p.kubeletRoot, p.dataDir+"/kubelet")
	or(&p.binary, "/usr/local/bin/k0s")
	or(&p.token, "/etc/k0s/k0stoken")
	return p
}

// SystemctlShow returns what systemctl show prints of the properties Id, LoadState,
// ActiveState and SubState of units.
func (m Machine) SystemctlShow(units ...string) string {
	var blocks []string
	for _, u := range units {
		state, known := m.Services[u]
		sub := map[string]string{"active": "running", "failed": "failed", "activating": "auto-restart", "deactivating": "stop-sigterm"}[state]
		if !known {
			state = "inactive"
		}
		load := "loaded"
		if service, _ := strings.CutSuffix(u, ".service"); slices.Contains(serviceNames(), service) {
			known = m.file(service) != ""
		}
		if !known {
			load = "not-found"
		}
		if sub == "" {
			sub = "dead"
		}
		blocks = append(blocks, "Id="+u+"\nLoadState="+load+"\nActiveState="+state+"\nSubState="+sub+"\n")
	}
	return strings.Join(blocks, "\n")
}

func (m Machine) renderServices(p *page) {
	p.val("init", m.Init)
	switch m.Init {
	case "systemd":
		p.block("services", "yes", m.SystemctlShow("k0scontroller.service", "k0sworker.service", "firewalld.service", "nm-cloud-setup.service", "nm-cloud-setup.timer"))
	case "openrc":
		text := ""
		for _, s := range append(serviceNames(), "firewalld") {
			if _, ok := m.Files["/etc/init.d/"+s]; ok {
				text += s + " " + m.Services[s] + "\n"
			}
		}
		p.block("services", "yes", text)
	default:
		p.block("services", "no", "")
	}
	for _, s := range serviceNames() {
		f := m.file(s)
		p.val("file-"+s, f)
		if f == "" {
			continue
		}
		status := "yes"
		if m.command(s) == "" {
			status = "unknown"
		}
		p.block("command-"+s, status, m.command(s)+"\n")
	}
}

func (m Machine) renderK0s(p *page) {
	at := m.paths()
	p.val("data-dir", at.dataDir)
	p.val("kubelet-root", at.kubeletRoot)
	p.val("binary", at.binary)
	p.val("token-file", at.token)
	_, binary := m.Files[at.binary]
	switch {
	case !binary:
		p.block("k0s-version", "no", "")
	case m.K0sVersion == "":
		p.block("k0s-version", "no", "\n")
	default:
		p.block("k0s-version", "yes", m.K0sVersion+"\n")
	}
	if binary && m.K0sVersion != "" && m.StatusRole != "" {
		p.block("k0s-status", "yes", "Version "+m.K0sVersion+"\nRole "+m.StatusRole+"\n")
	} else {
		p.block("k0s-status", "no", "")
	}
	m.renderCA(p, at)
	p.lines("left-data", m.list(at.dataDir, "images", "lost+found"))
	p.lines("left-etcd-ca", m.list(at.dataDir+"/pki/etcd"))
	p.val("left-etcd-data", yesNo(m.exists(at.dataDir+"/etcd/member")))
	p.lines("left-kubelet", m.list(at.kubeletRoot, "lost+found"))
	p.lines("left-run", m.list("/run/k0s"))
	p.lines("left-cni", m.list("/etc/cni/net.d"))
	mounts := ""
	for _, mount := range m.Mounts {
		if strings.HasPrefix(mount, at.dataDir+"/") || strings.HasPrefix(mount, at.kubeletRoot+"/") || strings.HasPrefix(mount, "/run/k0s/") {
			mounts += mount + "\n"
		}
	}
	p.block("left-mounts", "yes", mounts)
}

// renderCA writes the certificates of the CA, wherever one is.
func (m Machine) renderCA(p *page, at paths) {
	if text, ok := m.Files[at.dataDir+"/pki/ca.crt"]; ok {
		p.block("ca-pki", "yes", text)
	} else {
		p.block("ca-pki", "no", "")
	}
	conf := m.Files[at.dataDir+"/kubelet.conf"]
	if conf != "" {
		p.block("ca-kubelet", "yes", caData(conf))
	} else {
		p.block("ca-kubelet", "no", "")
	}
	p.val("kubelet-conf", yesNo(conf != ""))
	found := at.token
	token, ok := m.Files[found]
	if !ok {
		found = "/etc/k0s/k0stoken"
		token, ok = m.Files[found]
	}
	if token != "" {
		p.block("ca-token", "yes", caData(DecodeToken(token)))
	} else {
		p.block("ca-token", "no", "")
	}
	if !ok {
		found = ""
	}
	p.val("token-found", found)
}

// caData is the CA certificate that a kubeconfig holds.
func caData(kubeconfig string) string {
	_, data, ok := strings.Cut(kubeconfig, "certificate-authority-data: ")
	if !ok {
		return ""
	}
	data, _, _ = strings.Cut(data, "\n")
	pem, err := base64.StdEncoding.DecodeString(strings.TrimSpace(data))
	if err != nil {
		return ""
	}
	return string(pem)
}

// DecodeToken returns the kubeconfig in a join token, empty if it is none.
func DecodeToken(token string) string {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(token))
	if err != nil {
		return ""
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return ""
	}
	conf, err := io.ReadAll(z)
	if err != nil {
		return ""
	}
	return string(conf)
}

// exists says whether there is a file or directory at name.
func (m Machine) exists(name string) bool {
	if slices.Contains([]string{"/var", "/var/lib", "/tmp", "/run", "/etc", "/usr"}, name) {
		return true
	}
	_, file := m.Files[name]
	return file || m.dir(name)
}

// dir says whether there is a directory.
func (m Machine) dir(name string) bool {
	for f := range m.Files {
		if strings.HasPrefix(f, name+"/") {
			return true
		}
	}
	return false
}

// list returns the entries of a directory, in order, at most ten.
func (m Machine) list(name string, ignored ...string) []string {
	var entries []string
	for f := range m.Files {
		rest, ok := strings.CutPrefix(f, name+"/")
		if !ok || rest == "" {
			continue
		}
		entry, _, _ := strings.Cut(rest, "/")
		if !slices.Contains(entries, entry) && !slices.Contains(ignored, entry) {
			entries = append(entries, entry)
		}
	}
	slices.Sort(entries)
	return entries[:min(len(entries), 10)]
}
