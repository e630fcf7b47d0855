package hosts

import (
	"net/netip"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func prefixes(addrs []Address) (all []string) {
	for _, a := range addrs {
		all = append(all, a.Interface+" "+a.Prefix.String())
	}
	slices.Sort(all)
	return all
}

func TestAddresses(t *testing.T) {
	got := prefixes(parseAddresses(lines(`
1: lo    inet 127.0.0.1/8 scope host lo\       valid_lft forever preferred_lft forever
1: lo    inet6 ::1/128 scope host \       valid_lft forever preferred_lft forever
2: eth0    inet 10.99.0.21/24 brd 10.99.0.255 scope global eth0\       valid_lft forever preferred_lft forever
2: eth0    inet6 fe80::fc:ff:fe00:1/64 scope link \       valid_lft forever preferred_lft forever
3: tun0    inet 10.8.0.6 peer 10.8.0.5/32 scope global tun0\       valid_lft forever
5: cni0@if4    inet 10.244.0.1/24 scope global cni0\       valid_lft forever
6: eth1    link/ether 00:00:00:00:00:00
7: eth2    inet nonsense/24 scope global
8: eth3
`)))
	want := []string{"cni0 10.244.0.1/24", "eth0 10.99.0.21/24", "eth0 fe80::fc:ff:fe00:1/64", "lo 127.0.0.1/8", "lo ::1/128", "tun0 10.8.0.6/32"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

func TestRoutes(t *testing.T) {
	got := parseRoutes(lines(`
default via 10.99.0.1 dev eth0 proto dhcp src 10.99.0.21 metric 100
default dev wg0 scope link
default proto static metric 20 \	nexthop via fe80::1 dev eth1 weight 1 \	nexthop via fe80::2 dev eth2 weight 1
default via inet6 fe80::9 dev eth3
10.0.0.0/8 via 10.99.0.2 dev eth0
default
`))
	want := []Route{
		{"eth0", netip.MustParseAddr("10.99.0.1")}, {"wg0", netip.Addr{}},
		{"eth1", netip.MustParseAddr("fe80::1")}, {"eth3", netip.MustParseAddr("fe80::9")},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

// TestProcNet reads the kernel's own tables, for hosts without iproute2.
func TestProcNet(t *testing.T) {
	route := lines(`
Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010263C0	0003	0	0	0	00000000	0	0	0
eth0	000263C0	00000000	0001	0	0	0	00FFFFFF	0	0	0
eth1	0000000A	00000000	0001	0	0	0	000000FF	0	0	0
`)
	addrs, routes := parseProcNet(route, lines("127.0.0.1\n192.99.2.2\n10.1.2.3\n172.16.0.9\nnonsense"), lines(`
fe8000000000000000fc00fffe000001 04 40 20 80     eth0
00000000000000000000000000000001 01 80 10 80       lo
zz 01 80 10 80       lo
00 01 80 10 80       lo
`))
	want := []string{" 172.16.0.9/32", "eth0 192.99.2.2/24", "eth0 fe80::fc:ff:fe00:1/64", "eth1 10.1.2.3/8", "lo 127.0.0.1/8", "lo ::1/128"}
	if got := prefixes(addrs); !reflect.DeepEqual(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if want := []Route{{"eth0", netip.MustParseAddr("192.99.2.1")}}; !reflect.DeepEqual(routes, want) {
		t.Errorf("%v, want %v", routes, want)
	}
}

// TestWithoutIP runs the script as on a host without the ip command, and compares
// what it finds with what ip says.
func TestWithoutIP(t *testing.T) {
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("no ip command on this machine to compare with")
	}
	withIP, err := Collect(t.Context(), localConn{shell: "/bin/sh"}, CollectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	script := strings.Replace(factsScript, "if have ip; then", "if false; then", 1)
	if script == factsScript {
		t.Fatal("the script no longer asks for ip as this test believes")
	}
	without, err := Collect(t.Context(), localConn{shell: "/bin/sh", script: script}, CollectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := prefixes(without.Addresses), prefixes(withIP.Addresses); !reflect.DeepEqual(got, want) {
		t.Errorf("%q\nip says %q", got, want)
	}
}

func TestListening(t *testing.T) {
	got, known := parseListening(lines("00000000:2382\n0100007F:094B\n0B00630A:094C\n00000000000000000000000000000000:192B\n0000000000000000FFFF00000100007F:0016\n00000000:2382"))
	want := []string{"0.0.0.0:9090", "10.99.0.11:2380", "127.0.0.1:22", "127.0.0.1:2379", "[::]:6443"}
	var text []string
	for _, p := range got {
		text = append(text, p.String())
	}
	slices.Sort(text)
	if known != Yes || !reflect.DeepEqual(text, want) {
		t.Errorf("%q, %s; want %q", text, known, want)
	}
	for _, bad := range []block{lines("x:1"), lines("00000000:"), lines("00000000:99999"), {lines: []string{"00000000:0016"}, status: Unknown}} {
		if got, known := parseListening(bad); known != Unknown || got != nil {
			t.Errorf("%v: %v, %s", bad, got, known)
		}
	}
	if got, known := parseListening(block{status: Yes}); known != Yes || len(got) != 0 {
		t.Errorf("nothing listens: %v, %s", got, known)
	}
}

func TestSplitAddress(t *testing.T) {
	for text, want := range map[string]struct {
		host string
		port int
	}{
		"10.0.0.1": {"10.0.0.1", 0}, "10.0.0.1:22": {"10.0.0.1", 22}, "h1": {"h1", 0}, "H1.Example.": {"h1.example", 0}, "h1:2222": {"h1", 2222},
		"fd00::1": {"fd00::1", 0}, "[fd00::1]": {"fd00::1", 0}, "[FD00:0::1]:22": {"fd00::1", 22}, "::ffff:10.0.0.1": {"10.0.0.1", 0},
		"fe80::1%eth0": {"fe80::1%eth0", 0}, " h1 ": {"h1", 0}, "my_host": {"my_host", 0}, "1host": {"1host", 0},
	} {
		host, port, err := splitAddress(text)
		if err != nil || host != want.host || port != want.port {
			t.Errorf("%q: %q %d %v, want %+v", text, host, port, err, want)
		}
	}
	for _, text := range []string{"", " ", "10.0.0.256", "010.0.0.1", "1.2.3", "h:", "h:0", "h:65536", "h:022", "h:+22", "[fd00::1", "[fd00::1]x", "[fd00::1]:", "[10.0.0.1]", "[h]:22", "fd00::1::2",
		"a b", "root@h", "ssh://h", "h/24", "-h", "h-", "a..b", ".", "h\x00", strings.Repeat("a", 64), strings.Repeat("a.", 130) + "a"} {
		if host, port, err := splitAddress(text); err == nil {
			t.Errorf("%q is taken for %q, %d", text, host, port)
		}
	}
}

// FuzzAddresses: what was read once reads the same again.
func FuzzAddresses(f *testing.F) {
	for _, s := range []string{"[fd00::1]:22", "h1", "10.0.0.1:22", "fe80::1%eth0", "0100007F:0016", "1: lo inet 127.0.0.1/8", "default via 1.2.3.4 dev x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if host, _, err := splitAddress(s); err == nil {
			if again, port, err := splitAddress(host); err != nil || again != host || port != 0 {
				t.Errorf("%q: %q, then %q %d %v", s, host, again, port, err)
			}
		}
		b := lines(s)
		for _, a := range parseAddresses(b) {
			if !a.Prefix.IsValid() {
				t.Errorf("%q: %v", s, a)
			}
		}
		addrs, _ := parseProcNet(b, b, b)
		for _, a := range addrs {
			if !a.Prefix.IsValid() {
				t.Errorf("%q: %v", s, a)
			}
		}
		parseRoutes(b)
		parseListening(b)
	})
}
