package hosts

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func lines(text string) block {
	return block{lines: strings.Split(strings.Trim(text, "\n"), "\n"), status: Yes}
}

func TestMeminfo(t *testing.T) {
	for name, c := range map[string]struct {
		b           block
		total, swap int64
	}{
		"plain":            {lines("MemTotal:       24683656 kB\nSwapTotal:             0 kB"), 24683656 << 10, 0},
		"swap":             {lines("MemTotal: 1 kB\nSwapTotal: 2048 kB"), 1024, 2 << 20},
		"lxcfs, no swap":   {lines("MemTotal:         524288 kB"), 512 << 20, -1},
		"no unit":          {lines("MemTotal: 4096"), 4096, -1},
		"unknown unit":     {lines("MemTotal: 4096 MB"), 0, -1},
		"negative":         {lines("MemTotal: -1 kB"), 0, -1},
		"too large":        {lines("MemTotal: 9223372036854775807 kB"), 0, -1},
		"nothing":          {lines(""), 0, -1},
		"not to be read":   {block{lines: []string{"MemTotal: 1 kB"}, status: Unknown}, 0, -1},
		"only half a file": {lines("MemTotal:"), 0, -1},
	} {
		if total, swap := parseMeminfo(c.b); total != c.total || swap != c.swap {
			t.Errorf("%s: %d, %d; want %d, %d", name, total, swap, c.total, c.swap)
		}
	}
}

// TestLimits: the tightest limit on the way up to the root counts, and what stands
// for "none" is no limit.
func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		cpus   float64
		memory int64
	}{
		"v2, none":             {"memory.max max\ncpu.max max 100000", 0, 0},
		"v2, nested slices":    {"memory.max max\ncpu.max 400000 100000\nmemory.max 1073741824\ncpu.max 150000 100000\nmemory.max 4294967296", 1.5, 1 << 30},
		"v1, none":             {"memory.limit_in_bytes 9223372036854771712\ncpu.cfs_quota_us -1\ncpu.cfs_period_us 100000", 0, 9223372036854771712},
		"v1, a container":      {"memory.limit_in_bytes 9223372036854771712\nmemory.limit_in_bytes 536870912\ncpu.cfs_quota_us 50000\ncpu.cfs_period_us 100000\ncpu.cfs_quota_us -1\ncpu.cfs_period_us 100000", .5, 512 << 20},
		"nothing":              {"", 0, 0},
		"zero is no limit":     {"memory.max 0", 0, 0},
		"period missing":       {"cpu.max 100000", 0, 0},
		"period zero":          {"cpu.max 100000 0", 0, 0},
		"quota without period": {"cpu.cfs_quota_us 50000\nmemory.max 5", 0, 5},
		"something else":       {"memory.max a lot\nfoo 1", 0, 0},
	} {
		if cpus, memory := parseLimits(lines(c.text)); cpus != c.cpus || memory != c.memory {
			t.Errorf("%s: %v, %d; want %v, %d", name, cpus, memory, c.cpus, c.memory)
		}
	}
}

// TestCgroup knows the four layouts that hosts have.
func TestCgroup(t *testing.T) {
	for name, c := range map[string]struct {
		root, unified, controllers string
		want                       Cgroup
	}{
		"unified": {"63677270", "", "cpuset cpu io memory pids", Cgroup{Version: 2, Controllers: []string{"cpuset", "cpu", "io", "memory", "pids"}}},
		"hybrid":  {"1021994", "63677270", "", Cgroup{Version: 1, Hybrid: true}},
		"legacy":  {"1021994", "", "", Cgroup{Version: 1}},
		"hybrid, with controllers of the unified part": {"1021994", "63677270", "cpu memory", Cgroup{Version: 1, Hybrid: true}},
		"not mounted":    {"62656572", "", "", Cgroup{}},
		"not known":      {"", "", "", Cgroup{}},
		"no controllers": {"63677270", "", "", Cgroup{Version: 2, Controllers: []string{}}},
	} {
		if got := parseCgroup(c.root, c.unified, c.controllers); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestDisk(t *testing.T) {
	for stat, want := range map[string]Disk{
		"18571654 4096 16777216 16261480 ext2/ext3": {"/x", "ext2/ext3", 18571654 * 4096, 16777216, 16261480},
		"1 4096 0 0 UNKNOWN (0x1234)":               {"/x", "UNKNOWN (0x1234)", 4096, 0, 0},
		"":                                          {On: "/x"},
		"1 2 3":                                     {On: "/x"},
		"-1 4096 1 1 xfs":                           {On: "/x"},
		"9223372036854775807 4096 1 1 xfs":          {On: "/x"},
		"1 0 1 1 xfs":                               {On: "/x"},
		"a b c d e":                                 {On: "/x"},
	} {
		if got := parseDisk("/x", stat); got != want {
			t.Errorf("%q: %+v, want %+v", stat, got, want)
		}
	}
}

func TestSELinux(t *testing.T) {
	for mode, want := range map[string]SELinux{
		"disabled": {Mode: "disabled"}, "enforce 1": {"enforcing", "targeted"}, "enforce 0": {"permissive", "targeted"}, "enforce": {}, "": {},
	} {
		if got := parseSELinux(mode, "targeted"); got != want {
			t.Errorf("%q: %+v, want %+v", mode, got, want)
		}
	}
	for label, want := range map[string]string{
		"system_u:object_r:bin_t:s0":                        "bin_t",
		"unconfined_u:object_r:user_tmp_t:s0-s0:c0.c1023\n": "user_tmp_t",
		"system_u:object_r:container_file_t":                "container_file_t",
		"?":                                                 "", "": "", "a:b": "", "::x:": "", "unlabeled": "", "a b:c:d": "",
	} {
		if got, err := SELinuxType(label); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", label, got, err, want)
		}
	}
}

// TestClock: a skew is measured at the middle of the way there and back, and how
// long the script took does not count.
func TestClock(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	for name, c := range map[string]struct {
		from, to string
		took     time.Duration
		want     Clock
	}{
		"exact":                   {"1000000.100000000", "1000000.300000000", 400 * time.Millisecond, Clock{Yes, 0, 100 * time.Millisecond}},
		"ahead":                   {"1000005.100000000", "1000005.300000000", 400 * time.Millisecond, Clock{Yes, 5 * time.Second, 100 * time.Millisecond}},
		"behind, script of 60 s":  {"0999990.000000000", "1000050.000000000", 60 * time.Second, Clock{Yes, -10 * time.Second, 0}},
		"whole seconds":           {"1000000", "1000000.%N", 0, Clock{Yes, 500 * time.Millisecond, 500 * time.Millisecond}},
		"no date":                 {"", "", time.Second, Clock{}},
		"nonsense":                {"now", "1000000", time.Second, Clock{}},
		"backwards":               {"1000010", "1000000", time.Second, Clock{}},
		"caller's clock set back": {"1000000.0", "1000000.0", -time.Second, Clock{}},
	} {
		if got := clock(c.from, c.to, start, start.Add(c.took)); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestMachineID(t *testing.T) {
	for id, want := range map[string]string{
		"3d1219c7c4c5404aaa1f6d2a48adfda4": "3d1219c7c4c5404aaa1f6d2a48adfda4",
		"3D1219C7C4C5404AAA1F6D2A48ADFDA4": "3d1219c7c4c5404aaa1f6d2a48adfda4",
		"uninitialized":                    "",
		"00000000000000000000000000000000": "",
		"":                                 "",
		"3d1219c7":                         "",
	} {
		if got := machineID(id); got != want {
			t.Errorf("%q: %q, want %q", id, got, want)
		}
	}
}

// FuzzMachine: whatever a host prints, nothing is read that is below zero.
func FuzzMachine(f *testing.F) {
	f.Add("MemTotal: 1 kB\nSwapTotal: 1 kB", "1 4096 1 1 ext4", "100.5")
	f.Add("memory.max 1\ncpu.max 1 2", "9 9 9 9 9", "1")
	f.Fuzz(func(t *testing.T, text, stat, now string) {
		total, swap := parseMeminfo(lines(text))
		cpus, memory := parseLimits(lines(text))
		d := parseDisk("/", stat)
		if total < 0 || swap < -1 || cpus < 0 || memory < 0 || d.FreeBytes < 0 || d.Inodes < 0 || d.FreeInodes < 0 {
			t.Errorf("%d %d %v %d %+v", total, swap, cpus, memory, d)
		}
		c := clock(now, now, time.Unix(0, 0), time.Unix(1, 0))
		if c.Uncertainty < 0 {
			t.Errorf("%+v", c)
		}
	})
}
