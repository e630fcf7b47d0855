package hosts

import (
	"errors"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/hosts/hoststest"
)

// fit are the facts of a host that meets every bound of either role.
func fit(t *testing.T) Facts {
	t.Helper()
	f := factsOf(t, hoststest.Ubuntu("h1", "10.0.0.1"))
	f.Clock = Clock{Known: Yes}
	return f
}

func TestFit(t *testing.T) {
	for _, r := range Roles() {
		if got := Check("h1", fit(t), r, Bounds{}); got != nil {
			t.Errorf("%s: %v", r, got)
		}
	}
}

// TestCheckBounds looks at both sides of every bound.
func TestCheckBounds(t *testing.T) {
	const gib = 1 << 30
	listen := func(ports ...string) func(*Facts) {
		return func(f *Facts) {
			for _, p := range ports {
				f.Listening = append(f.Listening, netip.MustParseAddrPort(p))
			}
		}
	}
	skew := func(s, u time.Duration) func(*Facts) { return func(f *Facts) { f.Clock = Clock{Yes, s, u} } }
	for name, c := range map[string]struct {
		role   Role
		change func(*Facts)
		want   string // id and severity, empty for none
	}{
		"RHEL":                        {Worker, func(f *Facts) { f.OS = OS{ID: "rhel", VersionID: "9.6"} }, ""},
		"Rocky":                       {Worker, func(f *Facts) { f.OS = OS{ID: "rocky", VersionID: "9.6"} }, "os warning"},
		"Debian":                      {Worker, func(f *Facts) { f.OS = OS{ID: "debian", VersionID: "12"} }, "os error"},
		"no OS":                       {Worker, func(f *Facts) { f.OS = OS{} }, "os error"},
		"arm64":                       {Worker, func(f *Facts) { f.Arch = "arm64" }, "os warning"},
		"riscv64":                     {Worker, func(f *Facts) { f.Arch = "riscv64" }, "os error"},
		"no architecture":             {Worker, func(f *Facts) { f.Arch = "" }, "os error"},
		"worker, 15 GiB":              {Worker, func(f *Facts) { f.DataDisk.FreeBytes = 15 * gib }, ""},
		"worker, less":                {Worker, func(f *Facts) { f.DataDisk.FreeBytes = 15*gib - 1 }, "storage error"},
		"controller, 25 GiB":          {ControllerWorker, func(f *Facts) { f.DataDisk.FreeBytes = 25 * gib }, ""},
		"controller, less":            {ControllerWorker, func(f *Facts) { f.DataDisk.FreeBytes = 25*gib - 1 }, "storage error"},
		"no disk":                     {Worker, func(f *Facts) { f.DataDisk = Disk{} }, "storage error"},
		"inodes":                      {Worker, func(f *Facts) { f.DataDisk.FreeInodes = 100_000 }, ""},
		"fewer inodes":                {Worker, func(f *Facts) { f.DataDisk.FreeInodes = 99_999 }, "storage error"},
		"a file system without count": {Worker, func(f *Facts) { f.DataDisk.Inodes, f.DataDisk.FreeInodes = 0, 0 }, ""},
		"7.9 cores":                   {Worker, func(f *Facts) { f.CPUs = 7.9 }, "cpu warning"},
		"2 cores":                     {Worker, func(f *Facts) { f.CPUs = 2 }, "cpu warning"},
		"1.9 cores":                   {Worker, func(f *Facts) { f.CPUs = 1.9 }, "cpu error"},
		"no cores":                    {Worker, func(f *Facts) { f.CPUs = 0 }, "cpu error"},
		"32 GiB less firmware":        {Worker, func(f *Facts) { f.MemoryBytes = 32*gib*95/100 + 1 }, ""},
		"less than 32 GiB":            {Worker, func(f *Facts) { f.MemoryBytes = 32*gib*95/100 - 1 }, "memory warning"},
		"worker, 4 GiB less firmware": {Worker, func(f *Facts) { f.MemoryBytes = 4*gib*95/100 + 1 }, "memory warning"},
		"worker, less memory":         {Worker, func(f *Facts) { f.MemoryBytes = 4*gib*95/100 - 1 }, "memory error"},
		"controller, 8 GiB":           {ControllerWorker, func(f *Facts) { f.MemoryBytes = 8 * gib }, "memory warning"},
		"controller, less memory":     {ControllerWorker, func(f *Facts) { f.MemoryBytes = 7 * gib }, "memory error"},
		"no memory":                   {Worker, func(f *Facts) { f.MemoryBytes = 0 }, "memory error"},
		"cgroup v1":                   {Worker, func(f *Facts) { f.Cgroup = Cgroup{Version: 1} }, "cgroup-v2 error"},
		"cgroup hybrid":               {Worker, func(f *Facts) { f.Cgroup = Cgroup{Version: 1, Hybrid: true} }, "cgroup-v2 error"},
		"no cgroup":                   {Worker, func(f *Facts) { f.Cgroup = Cgroup{} }, "cgroup-v2 error"},
		"no pids":                     {Worker, func(f *Facts) { f.Cgroup.Controllers = []string{"cpu", "cpuset", "memory"} }, "cgroup-v2 error"},
		"kubelet's port":              {Worker, listen("127.0.0.1:10250"), "ports error"},
		"a controller's port":         {Worker, listen("0.0.0.0:6443", "[::]:2380"), ""},
		"ports of a controller":       {ControllerWorker, listen("0.0.0.0:6443", "[::]:2380"), "ports error"},
		"ports not known":             {Worker, func(f *Facts) { f.PortsKnown = Unknown }, "ports error"},
		"its own k0s on the port":     {Worker, func(f *Facts) { listen("[::]:10250")(f); f.K0s.Worker.State = UnitActive }, ""},
		"1.9 s off":                   {Worker, skew(1900*time.Millisecond, 0), ""},
		"2 s off":                     {Worker, skew(-2*time.Second, 0), "clock warning"},
		"2 s off, perhaps":            {Worker, skew(2*time.Second, time.Millisecond), ""},
		"30 s off":                    {Worker, skew(30*time.Second, 0), "clock warning"},
		"more than 30 s off":          {Worker, skew(-30*time.Second-1, 0), "clock error"},
		"clock not known":             {Worker, func(f *Facts) { f.Clock = Clock{} }, "clock error"},
		"CNI":                         {Worker, func(f *Facts) { f.Leftovers.CNI = Yes }, "leftovers warning"},
		"leftovers, for the reset":    {Worker, func(f *Facts) { f.Leftovers.DataDir = Yes }, ""},
		"leftovers not known":         {Worker, func(f *Facts) { f.Leftovers.DataDir = Unknown }, "leftovers error"},
		"inotify":                     {Worker, func(f *Facts) { f.Inotify = Inotify{127, 65536} }, "inotify warning"},
		"inotify not known":           {Worker, func(f *Facts) { f.Inotify = Inotify{} }, ""},
		"swap":                        {Worker, func(f *Facts) { f.SwapBytes = 1 }, "swap warning"},
		"swap not known":              {Worker, func(f *Facts) { f.SwapBytes = -1 }, ""},
		"firewalld":                   {Worker, func(f *Facts) { f.Firewalld = Yes }, "firewalld warning"},
		"nm-cloud-setup":              {Worker, func(f *Facts) { f.NMCloudSetup = Yes }, "nm-cloud-setup warning"},
		"AppArmor without its parser": {Worker, func(f *Facts) { f.AppArmor = AppArmor{Yes, No} }, "apparmor warning"},
		"no AppArmor":                 {Worker, func(f *Facts) { f.AppArmor = AppArmor{No, No} }, ""},
		"no such role":                {"controller", func(*Facts) {}, "role error"},
	} {
		f := fit(t)
		c.change(&f)
		found := Check("h1", f, c.role, Bounds{})
		var got []string
		for _, x := range found {
			got = append(got, x.ID+" "+string(x.Severity))
			if x.Host != "h1" || x.Want == "" || x.Got == "" {
				t.Errorf("%s: %+v", name, x)
			}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %v, want %q", name, found, c.want)
		}
	}
}

// TestCheckAll: everything that is wrong is found at once, in the order of the
// documentation, and what was not observed is never taken for met.
func TestCheckAll(t *testing.T) {
	var got []string
	for _, f := range Check("h1", Facts{}, ControllerWorker, Bounds{}) {
		if f.Severity != Error {
			t.Errorf("%v is no error", f)
		}
		got = append(got, f.ID)
	}
	want := []string{CheckOS, CheckOS, CheckStorage, CheckCPU, CheckMemory, CheckCgroup, CheckPorts, CheckClock, CheckLeftovers}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSkip(t *testing.T) {
	for _, id := range Skippable() {
		for _, f := range Check("h1", Facts{}, Worker, Bounds{}, id) {
			if f.ID == id {
				t.Errorf("%s was skipped, and found: %v", id, f)
			}
		}
	}
	if !slices.ContainsFunc(Check("h1", Facts{}, Worker, Bounds{}, CheckCgroup), func(f Finding) bool { return f.ID == CheckCgroup }) {
		t.Error("cgroup v2 was switched off")
	}
	if err := ValidateSkips(CheckOS, CheckMemory); err != nil {
		t.Error(err)
	}
	err := ValidateSkips(CheckOS, CheckCgroup, "diks")
	want := "the check \"cgroup-v2\" cannot be skipped: want one of os, storage, cpu, memory\nthe check \"diks\" cannot be skipped: want one of os, storage, cpu, memory"
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

func TestBounds(t *testing.T) {
	if got := (Bounds{}).withDefaults(); !reflect.DeepEqual(got, DefaultBounds()) {
		t.Errorf("the zero Bounds are not the default: %+v", got)
	}
	if got := DefaultBounds().withDefaults(); !reflect.DeepEqual(got, DefaultBounds()) {
		t.Errorf("the default is changed: %+v", got)
	}
	none := Bounds{
		OS: []OSBound{{ID: "nix", Versions: []string{""}}}, Arches: []ArchBound{{Arch: "riscv64"}}, Storage: map[Role]int64{}, Inodes: map[Role]int64{}, CPUs: -1, CPUsRecommended: -1,
		Memory: map[Role]int64{}, MemoryRecommended: -1, MemoryTolerance: -1, CgroupControllers: []string{}, Ports: map[Role][]uint16{}, ClockWarn: -1, ClockError: -1,
		InotifyInstances: -1, InotifyWatches: -1,
	}
	f := Facts{OS: OS{ID: "nix"}, Arch: "riscv64", Cgroup: Cgroup{Version: 2}, Inotify: Inotify{1, 1}}
	f.Leftovers = Leftovers{No, No, No, No, No, No, No, nil}
	if got := Check("h1", f, Worker, none); got != nil {
		t.Errorf("nothing is demanded, and found: %v", got)
	}
}

func TestErrors(t *testing.T) {
	f := Facts{OS: OS{ID: "debian", VersionID: "12"}, SwapBytes: 1}
	found := Check("h1", f, Worker, Bounds{}, CheckStorage, CheckCPU, CheckMemory)
	err := Errors(found)
	e, ok := errors.AsType[*CheckError](err)
	if !ok || e.ID != CheckOS || e.Host != "h1" {
		t.Fatalf("%v", err)
	}
	if want := "h1: os: want ubuntu 22.04, 24.04, 26.04; rhel 8.10, 9.4, 9.5, 9.6, 9.7, 9.8, got debian 12 (can be skipped: os)"; e.Error() != want {
		t.Errorf("%s\nwant %s", e, want)
	}
	if strings.Contains(err.Error(), "swap") {
		t.Errorf("a warning is an error: %v", err)
	}
	if err := Errors([]Finding{{ID: CheckSwap, Severity: Warning}}); err != nil {
		t.Errorf("a warning is an error: %v", err)
	}
	if Errors([]Finding{{ID: "x"}}) == nil {
		t.Error("a finding without a severity is let pass")
	}
}

func TestVersions(t *testing.T) {
	if got := CheckMKE("c1", "4.2.1", "4.2.1"); got != nil {
		t.Errorf("%v", got)
	}
	for _, v := range []string{"4.2.0", ""} {
		if got := CheckMKE("c1", v, "4.2.1"); len(got) != 1 || got[0].ID != CheckMKEVersion || got[0].Severity != Error {
			t.Errorf("%q: %v", v, got)
		}
	}
	f := Facts{K0s: K0s{Version: "v1.36.3+k0s.2"}}
	if got := CheckK0s("h1", f, Register, "v1.36.3+k0s.2"); got != nil {
		t.Errorf("%v", got)
	}
	if got := CheckK0s("h1", f, Install, "v1.35.4+k0s.0"); got != nil {
		t.Errorf("a fresh host gets the cluster's version: %v", got)
	}
	for _, cluster := range []string{"v1.35.4+k0s.0", ""} {
		if got := CheckK0s("h1", f, Register, cluster); len(got) != 1 || got[0].ID != CheckK0sVersion {
			t.Errorf("%q: %v", cluster, got)
		}
	}
	if got := CheckK0s("h1", Facts{}, Start, ""); len(got) != 1 {
		t.Errorf("two unknown versions are taken for one: %v", got)
	}
}
