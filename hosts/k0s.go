package hosts

import (
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// parseK0s reads what was seen of k0s, of its services and of its CA.
func (f *Facts) parseK0s(r *reader) {
	f.DataDir, f.KubeletRoot = r.value("data-dir"), r.value("kubelet-root")
	k := &f.K0s
	k.Path = r.value("binary")
	k.Binary, k.Version = parseVersion(r.block("k0s-version"))
	k.Answers, k.Role = parseStatus(r.block("k0s-status"))
	k.KubeletConf = r.tri("kubelet-conf")
	k.TokenFile, k.TokenLeft = r.value("token-file"), No
	if found := r.value("token-found"); found != "" {
		k.TokenFile, k.TokenLeft = found, Yes
	}
	f.parseServices(r)
	f.CA = f.findCA(r.block("ca-pki"), r.block("ca-kubelet"), r.block("ca-token"))
}

// parseVersion says whether k0s runs, and which one it is. That something runs
// and prints no version is not known to be k0s.
func parseVersion(b block) (Tri, string) {
	if b.status != Yes {
		return b.status, ""
	}
	if !regexp.MustCompile(`^v\d+\.\d+\.\d+[0-9A-Za-z.+-]*$`).MatchString(b.first()) {
		return Unknown, ""
	}
	return Yes, b.first()
}

// parseStatus says whether k0s status answered, and which role it said.
func parseStatus(b block) (Tri, string) {
	if b.status != Yes {
		return b.status, ""
	}
	role := ""
	for _, line := range b.lines {
		if v, ok := strings.CutPrefix(line, "Role "); ok && role == "" {
			role = v
		}
	}
	if role != "controller" && role != "worker" {
		return Unknown, ""
	}
	return Yes, role
}

// parseServices reads the states of the services.
func (f *Facts) parseServices(r *reader) {
	b := r.block("services")
	states := map[string]map[string]string{}
	switch f.Init {
	case Systemd:
		states = parseShow(b)
		f.Firewalld = active(states["firewalld.service"])
		f.NMCloudSetup = anyOf(active(states["nm-cloud-setup.service"]), active(states["nm-cloud-setup.timer"]))
	case OpenRC:
		states = parseRC(b)
		f.Firewalld, f.NMCloudSetup = No, No
		if s := states["firewalld"]; s != nil {
			f.Firewalld = TriOf(s["status"] == "0")
		}
	}
	f.K0s.Controller = f.service(r, "k0scontroller", states)
	f.K0s.Worker = f.service(r, "k0sworker", states)
}

// active says whether a systemd unit is active.
func active(props map[string]string) Tri {
	if props == nil {
		return Unknown
	}
	return TriOf(props["ActiveState"] == "active")
}

// parseShow reads what `systemctl show` prints of several units: properties by
// name, by the Id of the unit, one unit after the other, a blank line between.
func parseShow(b block) map[string]map[string]string {
	units := map[string]map[string]string{}
	if b.status != Yes {
		return units
	}
	props := map[string]string{}
	for _, line := range append(slices.Clone(b.lines), "") {
		if name, value, ok := strings.Cut(line, "="); ok {
			props[name] = value
		} else if strings.TrimSpace(line) == "" {
			if id := props["Id"]; id != "" {
				units[id] = props
			}
			props = map[string]string{}
		}
	}
	return units
}

// parseRC reads exit statuses of rc-service: a service and a number a line.
func parseRC(b block) map[string]map[string]string {
	services := map[string]map[string]string{}
	if b.status != Yes {
		return services
	}
	for _, line := range b.lines {
		if w := strings.Fields(line); len(w) == 2 {
			services[w[0]] = map[string]string{"status": w[1]}
		}
	}
	return services
}

// service is what is known of one of k0s's services.
func (f *Facts) service(r *reader, name string, states map[string]map[string]string) Service {
	s := Service{File: r.value("file-" + name)}
	if s.File != "" {
		if b := r.block("command-" + name); b.status == Yes {
			s.Args = splitCommand(b.first())
		}
	}
	switch f.Init {
	case Systemd:
		s.State, s.Detail = systemdState(s.File, states[name+".service"])
	case OpenRC:
		s.State, s.Detail = openRCState(s.File, states[name])
	default:
		// A file can be seen, its state not.
		if s.File == "" {
			s.State = UnitNone
			break
		}
		s.State, s.Detail = UnitUnknown, "the init system "+strconv.Quote(string(f.Init))+" is neither systemd nor OpenRC"
	}
	return s
}

// systemdState makes one state of what systemd says and what is on disk.
func systemdState(file string, p map[string]string) (Unit, string) {
	if p == nil {
		return UnitUnknown, "systemctl did not answer"
	}
	load, act, sub := p["LoadState"], p["ActiveState"], p["SubState"]
	detail := load + ", " + act + " (" + sub + ")"
	switch {
	case load != "loaded" && load != "not-found":
		return UnitUnknown, detail // masked, bad-setting, error, or nothing at all
	case act == "active", act == "reloading", act == "activating":
		return UnitActive, detail
	case act == "failed" && load == "not-found" && file == "":
		// What a stop that failed leaves once a reset has taken the unit away. It is no
		// service any more, but the next one of that name starts only after reset-failed.
		return UnitNone, detail
	case act == "failed":
		return UnitFailed, detail
	case act != "inactive":
		return UnitUnknown, detail // deactivating: what it will be is not known yet
	case file == "" && load == "not-found":
		return UnitNone, ""
	}
	return UnitStopped, detail
}

// openRCState makes one state of what rc-service said by its exit status.
func openRCState(file string, p map[string]string) (Unit, string) {
	if file == "" {
		return UnitNone, ""
	}
	detail := "rc-service status exits " + p["status"]
	switch p["status"] {
	case "0", "8": // started, starting
		return UnitActive, detail
	case "3":
		return UnitStopped, detail
	case "32":
		return UnitFailed, detail
	}
	return UnitUnknown, detail
}

// splitCommand takes a service's command line apart: words at spaces, quotes,
// and the escapes in which systemd units are written.
func splitCommand(s string) []string {
	var words []string
	var b strings.Builder
	in, quote := false, byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote == 0 && (c == ' ' || c == '\t'):
			if in {
				words = append(words, b.String())
			}
			b.Reset()
			in = false
			continue
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case c == quote:
			quote = 0
		case c == '\\' && i+1 < len(s):
			i++
			if s[i] == 'x' && i+2 < len(s) {
				if raw, err := hex.DecodeString(s[i+1 : i+3]); err == nil {
					b.Write(raw)
					i += 2
					break
				}
			}
			b.WriteByte(s[i])
		case c == '%' && i+1 < len(s) && s[i+1] == '%', c == '$' && i+1 < len(s) && s[i+1] == '$':
			b.WriteByte(c)
			i++
		default:
			b.WriteByte(c)
		}
		in = true
	}
	if in {
		words = append(words, b.String())
	}
	if len(words) > 0 {
		words[0] = strings.TrimLeft(words[0], "-@:+!")
	}
	return words
}
