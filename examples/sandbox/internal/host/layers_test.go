package host

import (
	"io/fs"
	"reflect"
	"testing"
	"time"
)

func TestDiff(t *testing.T) {
	at := time.Unix(1e9, 0)
	base := Entry{Mode: 0o644, Size: 1, Hash: "a", ModTime: at}
	with := func(f func(*Entry)) Entry { e := base; f(&e); return e }
	before := Snapshot{"/same": base, "/gone": base, "/mode": base, "/owner": base, "/text": base, "/touched": base, "/link": {Mode: fs.ModeSymlink, Target: "a"}}
	after := Snapshot{
		"/same": base, "/new": base,
		"/mode":    with(func(e *Entry) { e.Mode = 0o600; e.ModTime = at.Add(1) }),
		"/owner":   with(func(e *Entry) { e.GID = 1; e.Hash = "b" }),
		"/text":    with(func(e *Entry) { e.Hash = "b" }),
		"/touched": with(func(e *Entry) { e.ModTime = at.Add(1) }),
		"/link":    {Mode: fs.ModeSymlink, Target: "b"},
	}
	want := []Change{
		{"/gone", "removed"}, {"/link", "content"}, {"/mode", "mode"}, {"/new", "added"},
		{"/owner", "owner, content"}, {"/text", "content"}, {"/touched", "time"},
	}
	if got := Diff(before, after); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := Diff(before, before); len(got) != 0 {
		t.Errorf("nothing changed, but %v", got)
	}
}

func TestUnwatched(t *testing.T) {
	for p, want := range map[string]bool{
		"/var/log/ssh.log": true, "/var/log/k0s/x.log": false, "/var/log": false, "/run/systemd": true,
		"/run/k0s": false, "/etc/sshd.pid": false,
	} {
		if got := unwatched(p); got != want {
			t.Errorf("%s: %v, want %v", p, got, want)
		}
	}
}

func TestParseCommand(t *testing.T) {
	c, ok := parseCommand("1700000000000000005.77", "root\necho a\necho b")
	if !ok || c.User != "root" || c.Line != "echo a\necho b" || c.Time.UnixNano() != 1700000000000000005 {
		t.Errorf("%+v, %v", c, ok)
	}
	for name, text := range map[string]string{"1.1": "root", "x": "root\ny", "": ""} {
		if c, ok := parseCommand(name, text); ok {
			t.Errorf("%q %q is read as %+v", name, text, c)
		}
	}
}

func TestListens(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
   1: 0B00630A:192B 0100630A:0016 01 00000000:00000000 00:00000000 00000000     0        0 2 1
`
	for port, want := range map[int]bool{22: true, 6443: false, 23: false} {
		if got := listens(table, port); got != want {
			t.Errorf("port %d: %v, want %v", port, got, want)
		}
	}
}

func TestMemInfo(t *testing.T) {
	if got, want := memInfo(4 << 30)[:28], "MemTotal:        4194304 kB\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
