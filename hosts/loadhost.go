package hosts

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxHops bounds the bastions in front of one host, so that an alias that holds
// itself comes to an end.
const maxHops = 8

// spec reads one entry. The node is where its address stands, or the entry.
func (l *loader) spec(n *yaml.Node, field string) (s Spec, at *yaml.Node) {
	at = n
	m, ok := l.mapping(n, field, "role", "installFlags", "privateAddress", "privateInterface", "ssh")
	if !ok {
		return s, at
	}
	s.Role = l.role(m["role"], n, field+".role")
	if n := m["installFlags"]; n != nil {
		s.InstallFlags = l.flags(n, field+".installFlags")
	}
	if n := m["privateAddress"]; n != nil {
		s.PrivateAddress = l.privateAddress(n, field+".privateAddress")
	}
	if n := m["privateInterface"]; n != nil {
		s.PrivateInterface = l.interfaceName(n, field+".privateInterface")
	}
	if a, i := m["privateAddress"], m["privateInterface"]; a != nil && i != nil {
		l.fail(i, field, "both privateAddress and privateInterface are given: want only one of them")
	}
	if n := m["ssh"]; n != nil {
		var a *yaml.Node
		if s.SSH, a = l.ssh(n, field+".ssh", 0); a != nil {
			at = a
		}
	} else if !hasKey(n, "ssh") {
		l.fail(n, field, "ssh is missing: want at least ssh: {address: …}")
	}
	return s, at
}

func (l *loader) role(n, entry *yaml.Node, field string) Role {
	if n == nil {
		if !hasKey(entry, "role") {
			l.fail(entry, field, "missing: want %s or %s", Worker, ControllerWorker)
		}
		return ""
	}
	text, ok := l.text(n, field)
	if !ok || Role(text).Valid() {
		return Role(text)
	}
	l.fail(n, field, "unknown role %q: want %s or %s%s", text, Worker, ControllerWorker, suggestion(text, []string{string(Worker), string(ControllerWorker)}))
	return ""
}

// ssh reads how a host is reached. The node is where its address stands, or nil.
func (l *loader) ssh(n *yaml.Node, field string, hop int) (s SSH, at *yaml.Node) {
	if hop > maxHops {
		l.fail(n, field, "more than %d bastions in a row", maxHops)
		return s, nil
	}
	m, ok := l.mapping(n, field, "address", "user", "keyPath", "port", "bastion")
	if !ok {
		return s, nil
	}
	if p := m["port"]; p != nil {
		s.Port = l.port(p, field+".port")
	}
	if a := m["address"]; a != nil {
		at = a
		s.Address = l.address(a, field+".address", &s.Port, m["port"] != nil)
	} else if !hasKey(n, "address") {
		l.fail(n, field+".address", "missing: want an IP address or a host name")
	}
	if u := m["user"]; u != nil {
		s.User, _ = l.text(u, field+".user")
		if strings.ContainsAny(s.User, " \t\n@:") {
			l.fail(u, field+".user", "%q is no login name", s.User)
		}
	}
	if k := m["keyPath"]; k != nil {
		s.KeyPath, _ = l.text(k, field+".keyPath")
		if strings.HasPrefix(strings.TrimSpace(s.KeyPath), "-----BEGIN") {
			// What it says is not repeated: it may be the key.
			s.KeyPath = ""
			l.fail(k, field+".keyPath", "this is the key itself: want the path of its file")
		}
	}
	if b := m["bastion"]; b != nil {
		hop, _ := l.ssh(b, field+".bastion", hop+1)
		s.Bastion = &hop
	}
	return s.WithDefaults(), at
}

func (l *loader) address(n *yaml.Node, field string, port *int, hasPort bool) string {
	text, ok := l.text(n, field)
	if !ok {
		return ""
	}
	host, p, err := splitAddress(text)
	switch {
	case err != nil:
		l.fail(n, field, "%v", err)
		return ""
	case p != 0 && hasPort && p != *port:
		l.fail(n, field, "%q holds port %d, but port says %d: give it once", text, p, *port)
	case p != 0:
		*port = p
	}
	return host
}

func (l *loader) privateAddress(n *yaml.Node, field string) string {
	text, ok := l.text(n, field)
	if !ok {
		return ""
	}
	a, err := parseIP(text)
	if err != nil {
		l.fail(n, field, "%v", err)
		return ""
	}
	return a.String()
}

func (l *loader) interfaceName(n *yaml.Node, field string) string {
	text, ok := l.text(n, field)
	if ok && (len(text) > 15 || strings.ContainsAny(text, "/ \t\n:")) {
		l.fail(n, field, "%q is no network interface: want a name as eth0", text)
		return ""
	}
	return text
}

func (l *loader) port(n *yaml.Node, field string) int {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" {
		hint := ""
		if _, err := strconv.Atoi(n.Value); n.Kind == yaml.ScalarNode && err == nil {
			hint = ": write it without quotes"
		}
		l.fail(n, field, "want a number from 1 to 65535, got %s%s", kindOf(n), hint)
		return 0
	}
	p, err := strconv.Atoi(n.Value)
	if err != nil || p < 1 || p > 65535 || strings.HasPrefix(n.Value, "0") {
		l.fail(n, field, "%s is no port: want a number from 1 to 65535", n.Value)
		return 0
	}
	return p
}

// flags reads installFlags and holds them against their own grammar.
func (l *loader) flags(n *yaml.Node, field string) (flags []string) {
	items, ok := l.sequence(n, field)
	if !ok {
		return nil
	}
	whole := true
	for i, item := range items {
		text, ok := l.text(item, fmt.Sprintf("%s[%d]", field, i))
		whole = whole && ok
		flags = append(flags, text)
	}
	if !whole {
		return flags
	}
	s := Spec{InstallFlags: flags}
	for _, f := range []func() error{func() error { _, err := s.flags(); return err }, func() error { _, err := s.Labels(); return err }} {
		if err := f(); err != nil {
			for _, e := range unjoin(err) {
				at, where := n, field
				if fe, ok := e.(*FlagError); ok && fe.Index < len(items) {
					at, where = items[fe.Index], fmt.Sprintf("%s[%d]", field, fe.Index)
					e = fmt.Errorf("%s", fe.Problem)
				}
				l.fail(at, where, "%v", e)
			}
			return flags
		}
	}
	return flags
}

// text reads a string that is not empty.
func (l *loader) text(n *yaml.Node, field string) (string, bool) {
	switch {
	case n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str":
		hint := ""
		if n.Kind == yaml.ScalarNode {
			hint = fmt.Sprintf(": write it in quotes, as %q", n.Value)
		}
		l.fail(n, field, "want text, got %s%s", kindOf(n), hint)
	case strings.TrimSpace(n.Value) == "":
		l.fail(n, field, "empty")
	case strings.ContainsFunc(n.Value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) && !strings.Contains(n.Value, "-----BEGIN"):
		l.fail(n, field, "it holds a line break or a control character")
	default:
		return n.Value, true
	}
	return "", false
}

// unjoin returns the errors that errors.Join made one of.
func unjoin(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		return j.Unwrap()
	}
	return []error{err}
}
