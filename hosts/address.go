package hosts

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// splitAddress reads the address of a host: an IPv4 or IPv6 address, in brackets
// or not, or a host name, with or without a port. What it returns is how
// addresses are compared; a port of 0 means that there is none.
func splitAddress(text string) (host string, port int, err error) {
	s := strings.TrimSpace(text)
	bad := func(why string) (string, int, error) {
		return "", 0, fmt.Errorf("%q is no address: %s", text, why)
	}
	host, tail := s, ""
	switch {
	case strings.Contains(s, "@"):
		return bad("want it without the user, which has a field of its own")
	case strings.Contains(s, "://") || strings.Contains(s, "/"):
		return bad("want an IP address or a host name, not a URL or a network")
	case strings.HasPrefix(s, "["):
		var ok bool
		if host, tail, ok = strings.Cut(s[1:], "]"); !ok {
			return bad("the closing bracket is missing")
		}
		if a, err := netip.ParseAddr(host); err != nil || !a.Is6() {
			return bad("want an IPv6 address in the brackets")
		}
		if tail != "" && !strings.HasPrefix(tail, ":") {
			return bad("want only a port after the brackets")
		}
		tail = strings.TrimPrefix(tail, ":")
		if tail == "" && strings.HasSuffix(s, ":") {
			return bad("the port is missing")
		}
	case strings.Count(s, ":") == 1:
		host, tail, _ = strings.Cut(s, ":")
		if tail == "" {
			return bad("the port is missing")
		}
	}
	if tail != "" {
		port, err = strconv.Atoi(tail)
		if err != nil || port < 1 || port > 65535 || tail[0] == '0' || tail[0] == '+' {
			return bad("want a port from 1 to 65535 after the colon")
		}
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().String(), port, nil
	}
	if strings.Contains(host, ":") {
		return bad("want an IPv6 address, or a host name and one port")
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if why := notAName(name); why != "" {
		return bad(why)
	}
	return name, port, nil
}

// notAName says why name is no host name, or "".
func notAName(name string) string {
	if name == "" || len(name) > 253 {
		return "want an IP address or a host name"
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 {
			return "a part between two dots is empty or longer than 63 letters"
		}
		if label[0] == '-' || label[len(label)-1] == '-' {
			return "a part of a host name neither begins nor ends with a hyphen"
		}
		if strings.ContainsFunc(label, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
		}) {
			return "a host name has letters, digits, hyphens and dots only"
		}
	}
	// The last part of a name is never a number: it is meant to be an IPv4 address.
	if last := labels[len(labels)-1]; strings.Trim(last, "0123456789") == "" {
		return "want four numbers from 0 to 255 without leading zeros, if it is to be an IPv4 address"
	}
	return ""
}

// parseIP reads an address that a peer is to reach: no name, no zone, and no
// address that says nothing to another host.
func parseIP(text string) (netip.Addr, error) {
	s := strings.TrimSpace(text)
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		s = s[1 : len(s)-1]
	}
	a, err := netip.ParseAddr(s)
	a = a.Unmap()
	switch {
	case err != nil:
		return netip.Addr{}, fmt.Errorf("%q is no IP address", text)
	case a.Zone() != "":
		return netip.Addr{}, fmt.Errorf("%q has a zone, which means something only on the host itself: want an address that other hosts can reach", text)
	case a.IsLoopback(), a.IsUnspecified(), a.IsMulticast():
		return netip.Addr{}, fmt.Errorf("%q cannot be reached from other hosts", text)
	}
	return a, nil
}
