package hosts

import (
	"slices"
	"time"
)

// Bounds are what [Check] holds a host against. They are data: a program that
// knows better replaces any of them. A zero field stands for the documented
// default, which [DefaultBounds] shows; a negative number demands nothing.
type Bounds struct {
	OS     []OSBound   // distributions, the first that fits decides
	Arches []ArchBound // architectures

	Storage map[Role]int64 // free bytes at the data directory
	Inodes  map[Role]int64 // free inodes there

	CPUs            float64 // cores that are demanded
	CPUsRecommended float64 // fewer are warned of

	Memory            map[Role]int64 // bytes that are demanded
	MemoryRecommended int64          // bytes; less is warned of
	MemoryTolerance   float64        // the part of either that firmware may keep: 0.05

	CgroupControllers []string // of cgroup v2

	Ports map[Role][]uint16 // TCP ports that have to be free

	ClockWarn  time.Duration // a larger skew is warned of
	ClockError time.Duration // and a skew beyond this is an error

	InotifyInstances int64 // fewer are warned of
	InotifyWatches   int64
}

// OSBound is a distribution and its versions.
type OSBound struct {
	ID       string   // as in os-release
	Versions []string // as VERSION_ID has them
	// Similar says that it is not supported itself but much like one that is: a
	// warning, not an error.
	Similar bool
}

// ArchBound is an architecture, as Go names it.
type ArchBound struct {
	Arch    string
	Similar bool // a warning, not an error
}

// DefaultBounds returns the documented bounds.
func DefaultBounds() Bounds {
	rhel := []string{"8.10", "9.4", "9.5", "9.6", "9.7", "9.8"}
	return Bounds{
		OS: []OSBound{
			{ID: "ubuntu", Versions: []string{"22.04", "24.04", "26.04"}},
			{ID: "rhel", Versions: rhel},
			{ID: "rocky", Versions: rhel, Similar: true},
			{ID: "ol", Versions: rhel, Similar: true},
		},
		Arches:            []ArchBound{{Arch: "amd64"}, {Arch: "arm64", Similar: true}},
		Storage:           map[Role]int64{Worker: 15 << 30, ControllerWorker: 25 << 30},
		Inodes:            map[Role]int64{Worker: 100_000, ControllerWorker: 100_000},
		CPUs:              2,
		CPUsRecommended:   8,
		Memory:            map[Role]int64{Worker: 4 << 30, ControllerWorker: 8 << 30},
		MemoryRecommended: 32 << 30,
		MemoryTolerance:   0.05,
		CgroupControllers: []string{"cpu", "cpuset", "memory", "pids"},
		Ports:             map[Role][]uint16{Worker: {10250}, ControllerWorker: {2379, 2380, 6443, 8132, 9443, 10250}},
		ClockWarn:         2 * time.Second,
		ClockError:        30 * time.Second,
		InotifyInstances:  128,
		InotifyWatches:    65536,
	}
}

// withDefaults fills in what b leaves open.
func (b Bounds) withDefaults() Bounds {
	d := DefaultBounds()
	if b.OS == nil {
		b.OS = d.OS
	}
	if b.Arches == nil {
		b.Arches = d.Arches
	}
	if b.Storage == nil {
		b.Storage = d.Storage
	}
	if b.Inodes == nil {
		b.Inodes = d.Inodes
	}
	if b.Memory == nil {
		b.Memory = d.Memory
	}
	if b.CgroupControllers == nil {
		b.CgroupControllers = d.CgroupControllers
	}
	if b.Ports == nil {
		b.Ports = d.Ports
	}
	orDefault(&b.CPUs, d.CPUs)
	orDefault(&b.CPUsRecommended, d.CPUsRecommended)
	orDefault(&b.MemoryRecommended, d.MemoryRecommended)
	orDefault(&b.MemoryTolerance, d.MemoryTolerance)
	orDefault(&b.ClockWarn, d.ClockWarn)
	orDefault(&b.ClockError, d.ClockError)
	orDefault(&b.InotifyInstances, d.InotifyInstances)
	orDefault(&b.InotifyWatches, d.InotifyWatches)
	return b
}

func orDefault[T int64 | float64 | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// fits says whether o is one of the versions.
func (b OSBound) fits(o OS) bool { return b.ID == o.ID && slices.Contains(b.Versions, o.VersionID) }
