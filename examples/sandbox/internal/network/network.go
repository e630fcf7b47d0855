// Package network wires the hosts of a sandbox together, in a network namespace of its own that
// has no way out.
//
// There are two segments. The operator's side is on the first, with the controllers and the hosts
// that are reached directly. The second holds what lies behind the bastion, which alone is on
// both.
package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Addresses that every sandbox has. They are its own: several sandboxes do not meet.
const (
	Operator = "10.99.0.1" // the operator's side, and what plays MKE
	Registry = "10.99.0.2" // the registry
	Bastion  = "10.99.0.5" // the bastion's leg on the first segment
	Inner    = "10.98.0.5" // the bastion's leg on the second
)

// Front and Inside are the two segments.
const (
	Front  = "10.99.0.0/24"
	Inside = "10.98.0.0/24"
)

const (
	frontBridge  = "front"
	insideBridge = "inside"
	// registryTable is the routing table of what the registry answers: it reaches the second
	// segment, the operator's side does not.
	registryTable = 100
)

// Network is the wiring of one sandbox. Make it with New, in the namespace that is to hold it.
type Network struct {
	mu     sync.Mutex
	cables map[string][]string // host to the names of its cables on the supervisor's side
}

// Place is where a host is plugged in.
type Place struct {
	Addresses []string // one for each segment the host is on
	Routes    []Route
}

// Route says by which address a segment is reached.
type Route struct{ To, Via string }

// New makes the two segments in the calling process's network namespace, which is to be empty.
func New() (*Network, error) {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return nil, fmt.Errorf("network: loopback: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return nil, fmt.Errorf("network: loopback up: %w", err)
	}
	if err := bridge(frontBridge, Operator, Registry); err != nil {
		return nil, err
	}
	if err := bridge(insideBridge); err != nil {
		return nil, err
	}
	if err := registryRoute(); err != nil {
		return nil, err
	}
	return &Network{cables: map[string][]string{}}, nil
}

func bridge(name string, addrs ...string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	br := &netlink.Bridge{LinkAttrs: attrs}
	if err := netlink.LinkAdd(br); err != nil {
		return fmt.Errorf("network: bridge %s (the kernel needs the modules bridge and veth): %w", name, err)
	}
	for _, a := range addrs {
		addr, err := netlink.ParseAddr(a + "/24")
		if err != nil {
			return fmt.Errorf("network: %w", err)
		}
		if err := netlink.AddrAdd(br, addr); err != nil {
			return fmt.Errorf("network: address %s: %w", a, err)
		}
	}
	if err := netlink.LinkSetUp(br); err != nil {
		return fmt.Errorf("network: bridge %s up: %w", name, err)
	}
	return nil
}

func registryRoute() error {
	front, err := netlink.LinkByName(frontBridge)
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	_, inside, err := net.ParseCIDR(Inside)
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	_, own, err := net.ParseCIDR(Front)
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	for _, r := range []netlink.Route{
		{Table: registryTable, Dst: own, LinkIndex: front.Attrs().Index, Scope: netlink.SCOPE_LINK},
		{Table: registryTable, Dst: inside, Gw: net.ParseIP(Bastion), LinkIndex: front.Attrs().Index},
	} {
		if err := netlink.RouteAdd(&r); err != nil {
			return fmt.Errorf("network: registry's route to %v: %w", r.Dst, err)
		}
	}
	rule := netlink.NewRule()
	rule.Src = &net.IPNet{IP: net.ParseIP(Registry).To4(), Mask: net.CIDRMask(32, 32)}
	rule.Table = registryTable
	rule.Family = unix.AF_INET
	if err := netlink.RuleAdd(rule); err != nil {
		return fmt.Errorf("network: registry's routing rule: %w", err)
	}
	return nil
}

// Attach plugs a host, by the process number of its init, into its place.
func (n *Network) Attach(host string, pid int, p Place) error {
	ns, err := netns.GetFromPid(pid)
	if err != nil {
		return fmt.Errorf("network: namespace of %s: %w", host, err)
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		return fmt.Errorf("network: namespace of %s: %w", host, err)
	}
	defer h.Close()
	lo, err := h.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("network: loopback of %s: %w", host, err)
	}
	if err := h.LinkSetUp(lo); err != nil {
		return fmt.Errorf("network: loopback of %s: %w", host, err)
	}
	var cables []string
	for i, a := range p.Addresses {
		cable, err := plug(h, int(ns), host, i, a)
		if err != nil {
			return fmt.Errorf("network: %s: %s: %w", host, a, err)
		}
		cables = append(cables, cable)
	}
	for _, r := range p.Routes {
		if err := addRoute(h, r); err != nil {
			return fmt.Errorf("network: %s: route to %s: %w", host, r.To, err)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cables[host] = cables
	return nil
}

// plug makes a cable from the segment of addr to the host, where it is eth<i>.
func plug(h *netlink.Handle, ns int, host string, i int, addr string) (string, error) {
	segment, err := segmentOf(addr)
	if err != nil {
		return "", err
	}
	br, err := netlink.LinkByName(segment)
	if err != nil {
		return "", err
	}
	cable, inner := fmt.Sprintf("%s-%d", host, i), fmt.Sprintf("eth%d", i)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = cable
	attrs.MasterIndex = br.Attrs().Index
	// A host's card stays the same over a reboot, else its neighbours would talk to the old one
	// until they notice.
	mac, err := cardOf(addr)
	if err != nil {
		return "", err
	}
	// A host that was killed takes its end of the cable along, but not at once.
	if old, err := netlink.LinkByName(cable); err == nil {
		if err := netlink.LinkDel(old); err != nil {
			return "", fmt.Errorf("take the old cable out: %w", err)
		}
	}
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: inner, PeerNamespace: netlink.NsFd(ns), PeerHardwareAddr: mac}
	if err := netlink.LinkAdd(veth); err != nil {
		return "", fmt.Errorf("cable: %w", err)
	}
	if err := netlink.LinkSetUp(veth); err != nil {
		return "", fmt.Errorf("cable up: %w", err)
	}
	eth, err := h.LinkByName(inner)
	if err != nil {
		return "", err
	}
	a, err := netlink.ParseAddr(addr + "/24")
	if err != nil {
		return "", err
	}
	if err := h.AddrAdd(eth, a); err != nil {
		return "", fmt.Errorf("address: %w", err)
	}
	return cable, h.LinkSetUp(eth)
}

func segmentOf(addr string) (string, error) {
	a, err := netip.ParseAddr(addr)
	if err != nil {
		return "", err
	}
	for cidr, name := range map[string]string{Front: frontBridge, Inside: insideBridge} {
		if netip.MustParsePrefix(cidr).Contains(a) {
			return name, nil
		}
	}
	return "", fmt.Errorf("%s is on no segment: want one of %s or %s", addr, Front, Inside)
}

func cardOf(addr string) (net.HardwareAddr, error) {
	a, err := netip.ParseAddr(addr)
	if err != nil {
		return nil, err
	}
	if !a.Is4() {
		return nil, fmt.Errorf("%s is not an IPv4 address", addr)
	}
	b := a.As4()
	return net.HardwareAddr{0x02, 0x00, b[0], b[1], b[2], b[3]}, nil
}

func addRoute(h *netlink.Handle, r Route) error {
	_, to, err := net.ParseCIDR(r.To)
	if err != nil {
		return err
	}
	via := net.ParseIP(r.Via)
	if via == nil {
		return fmt.Errorf("%q is not an address", r.Via)
	}
	return h.RouteAdd(&netlink.Route{Dst: to, Gw: via})
}

// Link connects a host's cables, or takes them out: then nothing reaches the host and nothing
// leaves it, and nobody is told.
func (n *Network) Link(host string, up bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	cables := n.cables[host]
	if len(cables) == 0 {
		return fmt.Errorf("network: %s is not plugged in", host)
	}
	set := netlink.LinkSetDown
	if up {
		set = netlink.LinkSetUp
	}
	var errs []error
	for _, name := range cables {
		l, err := netlink.LinkByName(name)
		if err == nil {
			err = set(l)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("network: cable of %s: %w", host, err))
		}
	}
	return errors.Join(errs...)
}
