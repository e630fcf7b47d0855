package hosts

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// parseFacts reads what the facts script printed. The script was started at start
// and had ended at end, by the caller's clock.
func parseFacts(marker string, out []byte, start, end time.Time) (Facts, error) {
	fr, err := splitFrame(marker, string(out))
	if err != nil {
		return Facts{}, err
	}
	r := &reader{frame: fr}
	if uid := r.value("uid"); uid != "0" {
		return Facts{}, &rootError{uid}
	}
	host := r.value("hostname")
	f := Facts{
		Hostname:  host,
		NodeName:  strings.ToLower(host),
		MachineID: machineID(r.value("machine-id")),
		BootID:    r.value("boot-id"),
		OS:        parseOSRelease(r.block("os-release")),
		Arch:      arch(r.value("machine")),
		Kernel:    r.value("kernel"),
		Init:      Init(r.value("init")),
	}
	f.Clock = clock(r.value("time"), r.value("time-end"), start, end)
	f.parseMachine(r)
	f.parseNetwork(r)
	f.parseK0s(r)
	f.parseLeftovers(r)
	if err := r.done(); err != nil {
		return Facts{}, err
	}
	return f, nil
}

// rootError says that the script ran, but not as root.
type rootError struct{ uid string }

func (e *rootError) Error() string {
	return "the facts script did not run as root but as uid " + strconv.Quote(e.uid) + ": log in as root, or as a user who may use sudo"
}

// machineID drops what systemd writes before there is an id.
func machineID(s string) string {
	s = strings.ToLower(s)
	if len(s) != 32 || strings.Trim(s, "0123456789abcdef") != "" || strings.Trim(s, "0") == "" {
		return ""
	}
	return s
}

// arch is Go's name for what uname calls a machine.
func arch(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	case "armv7l", "armv6l":
		return "arm"
	}
	return machine
}

// clock compares the two clocks as NTP does: what passed between the two readings
// on the host was spent in the script, the rest on the way.
func clock(hostStart, hostEnd string, start, end time.Time) Clock {
	h1, fine1, ok1 := parseTime(hostStart)
	h2, fine2, ok2 := parseTime(hostEnd)
	took, inScript := end.Sub(start), h2.Sub(h1)
	if !ok1 || !ok2 || took < 0 || inScript < -time.Second {
		return Clock{}
	}
	// Halved first, so that even a clock that is centuries off does not overflow.
	c := Clock{Known: Yes, Skew: h1.Sub(start)/2 + h2.Sub(end)/2, Uncertainty: max(0, took-inScript) / 2}
	if !fine1 || !fine2 {
		c.Skew += time.Second / 2 // whole seconds, rounded down
		c.Uncertainty += time.Second / 2
	}
	return c
}

// parseTime reads what `date +%s.%N` prints, and whether it knew %N.
func parseTime(s string) (t time.Time, fine, ok bool) {
	whole, nanos, _ := strings.Cut(s, ".")
	sec, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || sec < 0 || sec > math.MaxInt32*4 {
		return time.Time{}, false, false
	}
	n, err := strconv.ParseInt(nanos, 10, 64)
	if fine = err == nil && len(nanos) == 9 && n >= 0; !fine {
		n = 0
	}
	return time.Unix(sec, n), fine, true
}

// Missing names what an operation needs to know of a host and could not be
// observed; empty means nothing.
func (f Facts) Missing() []string {
	var missing []string
	for _, m := range []struct {
		name    string
		missing bool
	}{
		{"host name", f.NodeName == ""},
		{"machine-id (/etc/machine-id is empty or absent: run systemd-machine-id-setup)", f.MachineID == ""},
		{"boot id", f.BootID == ""},
		{"architecture", f.Arch == ""},
		{"init system", f.Init == ""},
		{"addresses", len(f.Addresses) == 0},
		{"SELinux mode", f.SELinux.Mode == ""},
	} {
		if m.missing {
			missing = append(missing, m.name)
		}
	}
	return slices.Clip(missing)
}

// SELinuxEnabled says whether files need labels: it is enforcing or permissive.
func (f Facts) SELinuxEnabled() bool {
	return f.SELinux.Mode == "enforcing" || f.SELinux.Mode == "permissive"
}
