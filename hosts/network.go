package hosts

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// parseNetwork reads addresses, default routes and listening ports.
func (f *Facts) parseNetwork(r *reader) {
	if r.has("proc-route") { // the host has no ip command
		f.Addresses, f.Routes = parseProcNet(r.block("proc-route"), r.block("proc-local"), r.block("proc-inet6"))
	} else {
		f.Addresses = parseAddresses(r.block("addresses"))
		f.Routes = append(parseRoutes(r.block("routes")), parseRoutes(r.block("routes6"))...)
	}
	f.Listening, f.PortsKnown = parseListening(r.block("listening"))
}

// parseAddresses reads what `ip -o addr show` prints.
func parseAddresses(b block) (addrs []Address) {
	for _, line := range b.lines {
		w := strings.Fields(line)
		if len(w) < 4 || w[2] != "inet" && w[2] != "inet6" {
			continue
		}
		p, err := parsePrefix(w[3])
		if err != nil {
			continue
		}
		name, _, _ := strings.Cut(w[1], "@")
		addrs = append(addrs, Address{Interface: name, Prefix: p})
	}
	return addrs
}

// parsePrefix reads an address with or without the length of its network.
func parsePrefix(s string) (netip.Prefix, error) {
	if strings.Contains(s, "/") {
		return netip.ParsePrefix(s)
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Prefix{}, err
	}
	return a.WithZone("").Prefix(a.BitLen())
}

// parseRoutes reads what `ip -o route show default` prints.
func parseRoutes(b block) (routes []Route) {
	for _, line := range b.lines {
		w := strings.Fields(line)
		if len(w) == 0 || w[0] != "default" {
			continue
		}
		var route Route
		for i := 1; i+1 < len(w); i++ {
			switch w[i] {
			case "via":
				at := i + 1
				if w[at] == "inet6" && at+1 < len(w) { // an IPv4 route by an IPv6 gateway
					at++
				}
				if a, err := netip.ParseAddr(w[at]); err == nil && !route.Gateway.IsValid() {
					route.Gateway = a
				}
			case "dev":
				if route.Interface == "" {
					route.Interface = w[i+1]
				}
			}
		}
		if route.Interface != "" {
			routes = append(routes, route)
		}
	}
	return routes
}

// parseProcNet reads the kernel's own tables: routes, local IPv4 addresses, IPv6
// addresses. An IPv4 address is of the interface whose network it is in.
func parseProcNet(route, local, inet6 block) (addrs []Address, routes []Route) {
	type network struct {
		name string
		net  netip.Prefix
	}
	var nets []network
	for _, line := range route.lines {
		w := strings.Fields(line)
		if len(w) < 8 {
			continue
		}
		dest, err1 := procAddr(w[1])
		gateway, err2 := procAddr(w[2])
		mask, err3 := procAddr(w[7])
		if err1 != nil || err2 != nil || err3 != nil || !dest.Is4() || !mask.Is4() {
			continue
		}
		bits := 0
		for _, b := range mask.As4() {
			bits += strings.Count(strconv.FormatUint(uint64(b), 2), "1")
		}
		switch {
		case bits == 0 && dest.IsUnspecified():
			if gateway.IsUnspecified() {
				gateway = netip.Addr{}
			}
			routes = append(routes, Route{Interface: w[0], Gateway: gateway})
		case gateway.IsUnspecified():
			nets = append(nets, network{w[0], netip.PrefixFrom(dest, bits)})
		}
	}
	for _, line := range local.lines {
		a, err := netip.ParseAddr(strings.TrimSpace(line))
		if err != nil {
			continue
		}
		own := Address{Prefix: netip.PrefixFrom(a, a.BitLen())}
		if a.IsLoopback() {
			own = Address{Interface: "lo", Prefix: netip.PrefixFrom(a, 8)}
		}
		longest := -1
		for _, n := range nets {
			if n.net.Contains(a) && n.net.Bits() > longest {
				longest = n.net.Bits()
				own = Address{Interface: n.name, Prefix: netip.PrefixFrom(a, longest)}
			}
		}
		addrs = append(addrs, own)
	}
	for _, line := range inet6.lines {
		w := strings.Fields(line)
		if len(w) < 6 {
			continue
		}
		raw, err := hex.DecodeString(w[0])
		bits, err2 := strconv.ParseUint(w[2], 16, 8)
		if a, ok := netip.AddrFromSlice(raw); err == nil && err2 == nil && ok && a.Is6() && bits <= 128 {
			addrs = append(addrs, Address{Interface: w[5], Prefix: netip.PrefixFrom(a, int(bits))})
		}
	}
	return addrs, routes
}

// procAddr reads an address as the kernel's tables have it: in hex, each word of
// four bytes in the order of the machine, which is little-endian wherever k0s runs.
func procAddr(s string) (netip.Addr, error) {
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != 4 && len(raw) != 16 {
		return netip.Addr{}, fmt.Errorf("%.40q is no address of the kernel", s)
	}
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	a, _ := netip.AddrFromSlice(raw)
	return a.Unmap(), nil
}

// parseListening reads the local addresses of listening sockets.
func parseListening(b block) ([]netip.AddrPort, Tri) {
	var ports []netip.AddrPort
	for _, line := range b.lines {
		addr, port, ok := strings.Cut(strings.TrimSpace(line), ":")
		a, err := procAddr(addr)
		p, err2 := strconv.ParseUint(port, 16, 16)
		if !ok || err != nil || err2 != nil {
			return nil, Unknown
		}
		if ap := netip.AddrPortFrom(a, uint16(p)); !slices.Contains(ports, ap) {
			ports = append(ports, ap)
		}
	}
	if b.status != Yes {
		return nil, Unknown
	}
	slices.SortFunc(ports, netip.AddrPort.Compare)
	return ports, Yes
}
