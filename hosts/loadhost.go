package hosts

import (
	"errors"
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
	f, ok := l.mapping(n, field, "role", "installFlags", "privateAddress", "privateInterface", "ssh")
	if !ok {
		return s, at
	}
	s.Role = l.role(f, field)
	var flags []*yaml.Node
	if n := f.values["installFlags"]; n != nil {
		s.InstallFlags, flags = l.flags(n, field+".installFlags")
	}
	address, network := f.values["privateAddress"], f.values["privateInterface"]
	if address != nil {
		s.PrivateAddress = l.privateAddress(address, field+".privateAddress")
	}
	if network != nil {
		s.PrivateInterface = l.interfaceName(network, field+".privateInterface")
	}
	if address != nil && network != nil {
		l.fail(network, field, "both privateAddress and privateInterface are given: want only one of them")
	}
	l.checkFlags(s, flags, field+".installFlags")
	if f.lacks("ssh") {
		l.fail(n, field+".ssh", "missing: want at least ssh: {address: …}")
	}
	if n := f.values["ssh"]; n != nil {
		var a *yaml.Node
		if s.SSH, a = l.ssh(n, field+".ssh", 0); a != nil {
			at = a
		}
	}
	return s, at
}

func (l *loader) role(f fields, field string) Role {
	field += ".role"
	if f.lacks("role") {
		l.fail(f.node, field, "missing: want %s or %s", Worker, ControllerWorker)
	}
	n := f.values["role"]
	if n == nil {
		return ""
	}
	text, ok := l.text(n, field)
	if !ok || Role(text).Valid() {
		return Role(text)
	}
	hint := ""
	if s := near(text, []string{string(Worker), string(ControllerWorker)}); s != "" {
		hint = fmt.Sprintf("; did you mean %q?", s)
	}
	l.fail(n, field, "unknown role %q: want %s or %s%s", text, Worker, ControllerWorker, hint)
	return ""
}

// ssh reads how a host is reached. The node is where its address stands, or nil.
func (l *loader) ssh(n *yaml.Node, field string, hop int) (s SSH, at *yaml.Node) {
	if hop > maxHops {
		l.fail(n, field, "more than %d bastions in a row", maxHops)
		return s, nil
	}
	f, ok := l.mapping(n, field, "address", "user", "keyPath", "port", "bastion")
	if !ok {
		return s, nil
	}
	port := f.values["port"]
	if port != nil {
		s.Port = l.port(port, field+".port")
	}
	if f.lacks("address") {
		l.fail(n, field+".address", "missing: want an IP address or a host name")
	}
	if at = f.values["address"]; at != nil {
		s.Address = l.address(at, field+".address", &s.Port, port != nil)
	}
	if u := f.values["user"]; u != nil {
		s.User, _ = l.text(u, field+".user")
		if strings.ContainsAny(s.User, " \t\n@:") {
			l.fail(u, field+".user", "%q is no login name", s.User)
		}
	}
	if k := f.values["keyPath"]; k != nil {
		s.KeyPath, _ = l.text(k, field+".keyPath")
		if strings.HasPrefix(strings.TrimSpace(s.KeyPath), "-----BEGIN") {
			// What it says is not repeated: it may be the key.
			s.KeyPath = ""
			l.fail(k, field+".keyPath", "this is the key itself: want the path of its file")
		}
	}
	if b := f.values["bastion"]; b != nil {
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

// flags reads installFlags.
func (l *loader) flags(n *yaml.Node, field string) (flags []string, items []*yaml.Node) {
	items, ok := l.sequence(n, field)
	if !ok {
		return nil, nil
	}
	whole := true
	for i, item := range items {
		text, ok := l.text(item, fmt.Sprintf("%s[%d]", field, i))
		whole = whole && ok
		flags = append(flags, text)
	}
	if !whole {
		return nil, nil
	}
	return flags, items
}

// checkFlags holds the install flags against what they may be, each at its place.
func (l *loader) checkFlags(s Spec, items []*yaml.Node, field string) {
	for _, err := range unjoin(CheckInstallFlags(s)) {
		if e, ok := errors.AsType[*FlagError](err); ok && e.Index < len(items) {
			l.fail(items[e.Index], fmt.Sprintf("%s[%d]", field, e.Index), "%s: %s", e.Flag, e.Problem)
		}
	}
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

// unjoin returns the errors that errors.Join made one of, however deep.
func unjoin(err error) []error {
	if err == nil {
		return nil
	}
	j, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range j.Unwrap() {
		all = append(all, unjoin(e)...)
	}
	return all
}
