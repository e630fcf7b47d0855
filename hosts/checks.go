package hosts

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

const notObserved = "it could not be observed"

func one(s Severity, want, format string, args ...any) []Finding {
	return []Finding{{Severity: s, Want: want, Got: fmt.Sprintf(format, args...)}}
}

func findOS(f Facts, _ Role, b Bounds) []Finding {
	return append(findDistribution(f.OS, b.OS), findArch(f.Arch, b.Arches)...)
}

func findDistribution(o OS, bounds []OSBound) []Finding {
	var supported []string
	for _, bound := range bounds {
		if !bound.Similar {
			supported = append(supported, bound.ID+" "+strings.Join(bound.Versions, ", "))
		}
	}
	want := strings.Join(supported, "; ")
	if o.ID == "" {
		return one(Error, want, "os-release names no distribution")
	}
	got := strings.TrimSpace(o.ID + " " + o.VersionID)
	for _, bound := range bounds {
		if !bound.fits(o) {
			continue
		}
		if bound.Similar {
			return one(Warning, want, "%s, which is similar but not supported", got)
		}
		return nil
	}
	// Something derived from a supported one is told apart from something else.
	for _, like := range o.IDLike {
		if slices.ContainsFunc(bounds, func(bound OSBound) bool { return bound.ID == like }) {
			return one(Error, want, "%s, which is like %s but not supported", got, like)
		}
	}
	return one(Error, want, "%s", got)
}

func findArch(arch string, bounds []ArchBound) []Finding {
	var supported []string
	for _, bound := range bounds {
		if bound.Arch == arch && !bound.Similar {
			return nil
		}
		if !bound.Similar {
			supported = append(supported, bound.Arch)
		}
	}
	want := strings.Join(supported, " or ")
	switch {
	case arch == "":
		return one(Error, want, notObserved)
	case slices.ContainsFunc(bounds, func(bound ArchBound) bool { return bound.Arch == arch }):
		return one(Warning, want, "%s", arch)
	}
	return one(Error, want, "%s", arch)
}

func findStorage(f Facts, r Role, b Bounds) []Finding {
	var all []Finding
	d := f.DataDisk
	want := fmt.Sprintf("%s free at the data directory %s", size(b.Storage[r]), f.DataDir)
	switch {
	case b.Storage[r] <= 0:
	case d.Type == "":
		all = one(Error, want, notObserved)
	case d.FreeBytes < b.Storage[r]:
		all = one(Error, want, "%s (%s, on %s)", size(d.FreeBytes), d.Type, d.On)
	}
	if b.Inodes[r] > 0 && d.Type != "" && d.Inodes > 0 && d.FreeInodes < b.Inodes[r] {
		all = append(all, one(Error, fmt.Sprintf("%d free inodes at the data directory %s", b.Inodes[r], f.DataDir), "%d (%s, on %s)", d.FreeInodes, d.Type, d.On)...)
	}
	return all
}

func findCPU(f Facts, _ Role, b Bounds) []Finding {
	switch {
	case b.CPUs > 0 && f.CPUs == 0:
		return one(Error, cores(b.CPUs), notObserved)
	case f.CPUs < b.CPUs:
		return one(Error, cores(b.CPUs), "%s", cores(f.CPUs))
	case f.CPUs < b.CPUsRecommended:
		return one(Warning, cores(b.CPUsRecommended)+", as recommended", "%s", cores(f.CPUs))
	}
	return nil
}

func cores(n float64) string {
	if n == 1 {
		return "1 core"
	}
	return strconv.FormatFloat(n, 'g', 3, 64) + " cores"
}

func findMemory(f Facts, r Role, b Bounds) []Finding {
	// Firmware keeps a part, so that a machine sold with 4 GiB has a little less.
	less := func(bound int64) bool {
		return float64(f.MemoryBytes) < float64(bound)*(1-max(0, b.MemoryTolerance))
	}
	switch {
	case b.Memory[r] > 0 && f.MemoryBytes == 0:
		return one(Error, size(b.Memory[r]), notObserved)
	case b.Memory[r] > 0 && less(b.Memory[r]):
		return one(Error, size(b.Memory[r]), "%s", size(f.MemoryBytes))
	case b.MemoryRecommended > 0 && less(b.MemoryRecommended):
		return one(Warning, size(b.MemoryRecommended)+", as recommended", "%s", size(f.MemoryBytes))
	}
	return nil
}

// size writes bytes as people do.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return strconv.FormatFloat(math.Trunc(float64(n)/(1<<30)*100)/100, 'f', -1, 64) + " GiB"
	case n >= 1<<20:
		return strconv.FormatInt(n>>20, 10) + " MiB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

func findCgroup(f Facts, _ Role, b Bounds) []Finding {
	want := "cgroup v2 with the controllers " + strings.Join(b.CgroupControllers, ", ")
	switch {
	case f.Cgroup.Version == 0:
		return one(Error, want, "no cgroup file system that is known at /sys/fs/cgroup")
	case f.Cgroup.Hybrid:
		return one(Error, want, "a hybrid of v1 and v2, which counts as v1: boot with systemd.unified_cgroup_hierarchy=1")
	case f.Cgroup.Version != 2:
		return one(Error, want, "v1: boot with systemd.unified_cgroup_hierarchy=1")
	}
	var missing []string
	for _, c := range b.CgroupControllers {
		if !slices.Contains(f.Cgroup.Controllers, c) {
			missing = append(missing, c)
		}
	}
	if len(missing) > 0 {
		return one(Error, want, "v2 without %s", strings.Join(missing, ", "))
	}
	return nil
}

func findPorts(f Facts, r Role, b Bounds) []Finding {
	// A k0s that runs, and that a reset will stop before the install, holds them.
	if f.K0s.Answers == Yes || f.K0s.Controller.State == UnitActive || f.K0s.Worker.State == UnitActive || len(b.Ports[r]) == 0 {
		return nil
	}
	var names, taken []string
	for _, p := range b.Ports[r] {
		names = append(names, strconv.Itoa(int(p)))
	}
	want := "these TCP ports free: " + strings.Join(names, ", ")
	if f.PortsKnown != Yes {
		return one(Error, want, notObserved)
	}
	for _, l := range f.Listening {
		if slices.Contains(b.Ports[r], l.Port()) {
			taken = append(taken, l.String())
		}
	}
	if len(taken) > 0 {
		return one(Error, want, "something listens on %s", strings.Join(taken, ", "))
	}
	return nil
}

func findClock(f Facts, _ Role, b Bounds) []Finding {
	if b.ClockError <= 0 && b.ClockWarn <= 0 {
		return nil
	}
	if f.Clock.Known != Yes {
		return one(Error, "a clock that can be read", notObserved)
	}
	// What it is off by at least, as the way there and back blurs it.
	off := max(0, f.Clock.Skew.Abs()-f.Clock.Uncertainty)
	way := "ahead"
	if f.Clock.Skew < 0 {
		way = "behind"
	}
	switch {
	case b.ClockError > 0 && off > b.ClockError:
		return one(Error, fmt.Sprintf("a clock at most %v off", b.ClockError), "%v %s", f.Clock.Skew.Abs().Round(time.Millisecond), way)
	case b.ClockWarn > 0 && off >= b.ClockWarn:
		return one(Warning, fmt.Sprintf("a clock less than %v off", b.ClockWarn), "%v %s", f.Clock.Skew.Abs().Round(time.Millisecond), way)
	}
	return nil
}
