package hosts

import (
	"strconv"
	"strings"
)

// parseMachine reads what the machine has.
func (f *Facts) parseMachine(r *reader) {
	cpus, _ := strconv.ParseFloat(r.value("cpus"), 64)
	total, swap := parseMeminfo(r.block("meminfo"))
	lim := r.block("limits")
	quota, memory := parseLimits(lim)
	if lim.status == Yes && cpus >= 1 && cpus < 1<<20 {
		f.CPUs = cpus
		if quota > 0 {
			f.CPUs = min(f.CPUs, quota)
		}
	}
	if lim.status == Yes && total > 0 {
		f.MemoryBytes = total
		if memory > 0 {
			f.MemoryBytes = min(f.MemoryBytes, memory)
		}
	}
	f.SwapBytes = swap
	f.DataDisk = parseDisk(r.value("data-on"), r.value("data-stat"))
	f.KubeletDisk = parseDisk(r.value("kubelet-on"), r.value("kubelet-stat"))
	f.TempDisk = parseDisk(r.value("temp-on"), r.value("temp-stat"))
	f.Cgroup = parseCgroup(r.value("cgroup"), r.value("cgroup-unified"), r.value("cgroup-controllers"))
	f.SELinux = parseSELinux(r.value("selinux"), r.value("selinux-policy"))
	f.AppArmor = AppArmor{Parser: r.tri("apparmor-parser")}
	switch r.value("apparmor") {
	case "Y":
		f.AppArmor.Enabled = Yes
	case "N":
		f.AppArmor.Enabled = No
	}
	f.Inotify = Inotify{Instances: count(r.value("inotify-instances")), Watches: count(r.value("inotify-watches"))}
}

// count reads a number that is not negative; 0 for anything else.
func count(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// parseMeminfo returns the memory and the swap in bytes; 0 and -1 if not known.
func parseMeminfo(b block) (total, swap int64) {
	swap = -1
	if b.status != Yes {
		return 0, -1
	}
	for _, line := range b.lines {
		w := strings.Fields(line)
		if len(w) < 2 {
			continue
		}
		n, err := strconv.ParseInt(w[1], 10, 64)
		if err != nil || n < 0 || n > 1<<50 {
			continue
		}
		if len(w) == 3 {
			if w[2] != "kB" {
				continue
			}
			n *= 1024
		}
		switch w[0] {
		case "MemTotal:":
			total = n
		case "SwapTotal:":
			swap = n
		}
	}
	return total, swap
}

// parseLimits returns the tightest limits on the way from the script's own cgroup
// up to the root, in CPUs and in bytes; 0 means that there is none. Version 1 has
// no word for unlimited: it is a number that no machine has.
func parseLimits(b block) (cpus float64, memory int64) {
	tighter := func(n int64) {
		if n > 0 && (memory == 0 || n < memory) {
			memory = n
		}
	}
	quota := int64(-1)
	share := func(quota, period int64) {
		if quota > 0 && period > 0 && (cpus == 0 || float64(quota)/float64(period) < cpus) {
			cpus = float64(quota) / float64(period)
		}
	}
	for _, line := range b.lines {
		w := strings.Fields(line)
		if len(w) < 2 {
			continue
		}
		n, err := strconv.ParseInt(w[1], 10, 64)
		if err != nil {
			continue // "max"
		}
		switch w[0] {
		case "memory.max", "memory.limit_in_bytes":
			tighter(n)
		case "cpu.max":
			if len(w) == 3 {
				share(n, count(w[2]))
			}
		case "cpu.cfs_quota_us":
			quota = n
		case "cpu.cfs_period_us": // it follows its quota
			share(quota, n)
			quota = -1
		}
	}
	return cpus, memory
}

// parseDisk reads what stat says of a file system: free blocks, their size, inodes,
// free inodes, type.
func parseDisk(on, stat string) Disk {
	w := strings.SplitN(stat, " ", 5)
	if len(w) < 5 {
		return Disk{On: on}
	}
	var n [4]int64
	for i := range n {
		v, err := strconv.ParseInt(w[i], 10, 64)
		if err != nil || v < 0 {
			return Disk{On: on}
		}
		n[i] = v
	}
	if n[1] == 0 || n[0] > (1<<62)/n[1] {
		return Disk{On: on}
	}
	return Disk{On: on, Type: w[4], FreeBytes: n[0] * n[1], Inodes: n[2], FreeInodes: n[3]}
}

// The magic numbers of file systems, as stat prints them. Names would do, but not
// every stat knows that of cgroup2.
const (
	magicCgroup2 = "63677270"
	magicCgroup  = "27e0eb"
	magicTmpfs   = "1021994"
)

// parseCgroup tells the version by the file system at /sys/fs/cgroup itself.
func parseCgroup(root, unified, controllers string) Cgroup {
	switch root {
	case magicCgroup2:
		return Cgroup{Version: 2, Controllers: strings.Fields(controllers)}
	case magicTmpfs, magicCgroup:
		return Cgroup{Version: 1, Hybrid: unified == magicCgroup2}
	}
	return Cgroup{}
}

func parseSELinux(mode, policy string) SELinux {
	switch mode {
	case "disabled":
		return SELinux{Mode: "disabled"}
	case "enforce 1":
		return SELinux{Mode: "enforcing", Policy: policy}
	case "enforce 0":
		return SELinux{Mode: "permissive", Policy: policy}
	}
	return SELinux{}
}
