package hosts

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Target is a host in scope, for [CheckIdentities].
type Target struct {
	Host  string // as findings are to name it
	Spec  Spec
	Facts Facts
}

// CheckIdentities returns every identity that two targets share, or a target and a
// node of another name in the cluster: machine-id, node name, address. A node under
// a target's own name is not looked at: whether it is the target's is the business
// of the scenario matrix.
func CheckIdentities(targets []Target, cluster []Node) []Finding {
	var all []Finding
	add := func(host, want, format string, args ...any) {
		all = append(all, Finding{ID: CheckIdentity, Severity: Error, Host: host, Want: want, Got: fmt.Sprintf(format, args...)})
	}
	for i, t := range targets {
		for _, other := range targets[:i] {
			if t.Facts.MachineID != "" && t.Facts.MachineID == other.Facts.MachineID {
				add(t.Host, "a machine-id of its own", "%s, which %s has as well: one host listed twice, or a clone (give it its own by removing /etc/machine-id and running systemd-machine-id-setup)", t.Facts.MachineID, other.Host)
			}
			if t.Facts.NodeName != "" && t.Facts.NodeName == other.Facts.NodeName {
				add(t.Host, "a host name of its own", "%s, which %s has as well (change it with hostnamectl set-hostname)", t.Facts.NodeName, other.Host)
			}
			for _, a := range t.addresses() {
				if slices.Contains(other.addresses(), a) {
					add(t.Host, "an address of its own", "%s, which %s has as well", a, other.Host)
				}
			}
		}
		for _, n := range cluster {
			if strings.EqualFold(n.Name, t.Facts.NodeName) {
				continue
			}
			if t.Facts.MachineID != "" && strings.EqualFold(n.MachineID, t.Facts.MachineID) {
				add(t.Host, "a machine-id of its own", "%s, which node %s has as well: a clone, or a host that was renamed (then remove that node first)", t.Facts.MachineID, n.Name)
			}
			for _, a := range t.addresses() {
				if slices.ContainsFunc(n.Addresses, func(text string) bool { na, err := netip.ParseAddr(text); return err == nil && na.Unmap() == a }) {
					add(t.Host, "an address of its own", "%s, which node %s has as well", a, n.Name)
				}
			}
		}
	}
	return all
}

// addresses are those by which others know the host: the private one, and those of
// the interfaces of the default routes. Bridges for containers have the same
// address on every host, so they do not count.
func (t Target) addresses() []netip.Addr {
	var own []netip.Addr
	add := func(a netip.Addr) {
		if a = a.Unmap(); a.IsGlobalUnicast() && !slices.Contains(own, a) {
			own = append(own, a)
		}
	}
	for _, a := range t.Facts.Addresses {
		if slices.ContainsFunc(t.Facts.Routes, func(r Route) bool { return r.Interface == a.Interface }) {
			add(a.Prefix.Addr())
		}
	}
	if a, err := PrivateAddress(t.Spec, t.Facts); err == nil && a.IsValid() {
		add(a)
	}
	return own
}

// PrivateAddress returns the host's own address towards the cluster that its entry
// names, by privateAddress or by privateInterface; the zero Addr if it names none.
// It is an error if the host does not have it. Of several addresses of an
// interface the first IPv4 address is taken, else the first IPv6 address, those
// that reach no further than the link apart.
func PrivateAddress(s Spec, f Facts) (netip.Addr, error) {
	switch {
	case s.PrivateAddress != "" && s.PrivateInterface != "":
		return netip.Addr{}, fmt.Errorf("both privateAddress %s and privateInterface %s are given: want only one of them", s.PrivateAddress, s.PrivateInterface)
	case s.PrivateAddress != "":
		a, err := parseIP(s.PrivateAddress)
		if err != nil {
			return netip.Addr{}, fmt.Errorf("privateAddress: %w", err)
		}
		if !f.HasAddress(a) {
			return netip.Addr{}, fmt.Errorf("privateAddress %s is no address of the host, which has %s", a, f.addressList())
		}
		return a, nil
	case s.PrivateInterface != "":
		var found netip.Addr
		for _, own := range f.Addresses {
			a := own.Prefix.Addr().Unmap()
			if own.Interface == s.PrivateInterface && a.IsGlobalUnicast() && (!found.IsValid() || found.Is6() && a.Is4()) {
				found = a
			}
		}
		if !found.IsValid() {
			return netip.Addr{}, fmt.Errorf("privateInterface %s has no address that others can reach; the host has %s", s.PrivateInterface, f.addressList())
		}
		return found, nil
	}
	return netip.Addr{}, nil
}

// addressList names the addresses that others can reach, for people.
func (f Facts) addressList() string {
	var list []string
	for _, a := range f.Addresses {
		if a.Prefix.Addr().IsGlobalUnicast() {
			list = append(list, a.Prefix.Addr().String()+" ("+a.Interface+")")
		}
	}
	if len(list) == 0 {
		return "none that is known"
	}
	return strings.Join(list, ", ")
}
