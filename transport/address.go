package transport

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// defaultPort is where SSH servers listen.
const defaultPort = 22

// splitAddress takes apart what a person writes as the address of a host: a name, an IP
// address, an IPv6 address with or without brackets, each with or without a port. The
// port given apart has to agree with it; 0 means that none was given.
func splitAddress(address string, port int) (host string, _ int, err error) {
	if address == "" {
		return "", 0, errors.New("there is no address")
	}
	if port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("port %d is not between 1 and 65535", port)
	}
	host = address
	switch {
	case strings.HasPrefix(address, "[") && strings.HasSuffix(address, "]"):
		host = address[1 : len(address)-1]
	case strings.HasPrefix(address, "[") || strings.Count(address, ":") == 1:
		var digits string
		if host, digits, err = net.SplitHostPort(address); err != nil {
			return "", 0, fmt.Errorf("address %q is neither a host nor host:port", address)
		}
		n, err := strconv.ParseUint(digits, 10, 16)
		if err != nil || n == 0 {
			return "", 0, fmt.Errorf("address %q: port %q is not between 1 and 65535", address, digits)
		}
		if port != 0 && port != int(n) {
			return "", 0, fmt.Errorf("address %q has another port than %d, which is given apart", address, port)
		}
		port = int(n)
	}
	if port == 0 {
		port = defaultPort
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.IsUnspecified() {
			return "", 0, fmt.Errorf("address %q is no host's own", address)
		}
		return ip.String(), port, nil
	}
	if host == "" || strings.ContainsAny(host, ":/@[]#?*,!|\\\"'`$&;<>(){} \t\r\n\x00") || strings.HasPrefix(host, "-") {
		return "", 0, fmt.Errorf("address %q is neither a host name nor an IP address", address)
	}
	return strings.ToLower(host), port, nil
}
