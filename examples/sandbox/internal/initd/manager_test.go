package initd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/reap"
)

// reaper collects the children of the test program, of which there is one, as of a PID 1: so nothing
// else here may wait for a process.
var reaper = sync.OnceValue(reap.New)

func manager(t *testing.T) *Manager {
	t.Helper()
	m := NewManager(reaper(), t.TempDir(), t.TempDir(), []string{"PATH=/usr/bin:/bin"})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		m.Close(ctx)
	})
	return m
}

func write(t *testing.T, m *Manager, name, service string) {
	t.Helper()
	text := "[Service]\n" + service + "\n[Install]\nWantedBy=multi-user.target\n"
	if err := os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func ctl(t *testing.T, m *Manager, args ...string) string {
	t.Helper()
	a := m.Systemctl(t.Context(), args)
	return strings.TrimSpace(fmt.Sprintf("%d %s%s", a.Code, a.Stdout, a.Stderr))
}

func eventually(t *testing.T, m *Manager, want string, args ...string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.After(20 * time.Second)
	for {
		got := ctl(t, m, args...)
		if got == want {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("systemctl %v: %q, want %q", args, got, want)
		}
	}
}

// The states of a service, as systemd names them, and the statuses of systemctl.
func TestServiceStates(t *testing.T) {
	m := manager(t)
	write(t, m, "ok.service", "ExecStart=/bin/sleep 1000\nKillMode=process")
	write(t, m, "bad.service", "ExecStart=/bin/sh -c \"exit 7\"")
	write(t, m, "none.service", "ExecStart=/no/such/program\nRestart=always\nRestartSec=1000")
	write(t, m, "stubborn.service", "ExecStart=/bin/sh -c \"trap '' TERM; echo ready; while :; do sleep 1; done\"\nTimeoutStopSec=200ms")
	write(t, m, "sulky.service", "ExecStart=/bin/sh -c \"trap 'exit 1' TERM; echo ready; while :; do sleep 0.01; done\"\nKillMode=process\nRestart=always")
	for _, c := range []struct {
		args, want string
	}{
		{"is-active ok", "3 inactive"},
		{"is-active nosuch", "4 inactive"},
		{"is-enabled ok", "1 disabled"},
		{"is-enabled nosuch", "4 not-found"},
		{"start nosuch", "5 Failed to start nosuch.service: Unit nosuch.service not found."},
		{"stop nosuch", "5 Failed to stop nosuch.service: Unit nosuch.service not loaded."},
		{"start ok", "0"},
		{"start ok", "0"},
		{"is-active ok", "0 active"},
		{"is-active ok nosuch", "4 active\ninactive"},
		{"show ok -p SubState --value", "0 running"},
		{"show --property=Id,LoadState,ActiveState,SubState ok nosuch", "0 Id=ok.service\nLoadState=loaded\nActiveState=active\nSubState=running\n\nId=nosuch.service\nLoadState=not-found\nActiveState=inactive\nSubState=dead"},
		{"stop ok", "0"},
		{"is-active ok", "3 inactive"},
		{"is-failed ok", "1 inactive"},
		{"enable nosuch", "1 Failed to enable unit: Unit file nosuch.service does not exist."},
		{"frobnicate ok", "1 Unknown command verb 'frobnicate'."},
		{"start --frob ok", "1 systemctl: unrecognized option '--frob'"},
		{"is-system-running", "0 running"},
	} {
		if got := ctl(t, m, strings.Fields(c.args)...); got != c.want {
			t.Errorf("systemctl %s: %q, want %q", c.args, got, c.want)
		}
	}

	ctl(t, m, "start", "bad")
	eventually(t, m, "0 failed", "is-failed", "bad")
	if got := ctl(t, m, "show", "bad", "-p", "Result,ExecMainStatus"); got != "0 Result=exit-code\nExecMainStatus=7" {
		t.Errorf("a service that failed: %q", got)
	}
	ctl(t, m, "reset-failed", "bad")
	if got := ctl(t, m, "is-active", "bad"); got != "3 inactive" {
		t.Errorf("after reset-failed: %q", got)
	}

	// systemd's start of a program that is not there succeeds: the child finds out.
	if got := ctl(t, m, "start", "none"); got != "0" {
		t.Errorf("start of a missing program: %q", got)
	}
	if got := ctl(t, m, "show", "none", "-p", "ActiveState,SubState,ExecMainStatus"); got != "0 ExecMainStatus=203\nActiveState=activating\nSubState=auto-restart" {
		t.Errorf("a service whose program is missing: %q", got)
	}
	ctl(t, m, "stop", "none")
	if got := ctl(t, m, "is-active", "none"); got != "3 inactive" {
		t.Errorf("stopped while it waits to be started again: %q", got)
	}

	// One that fails while it is stopped is failed, and is not started again.
	for name, result := range map[string]string{"stubborn": "timeout", "sulky": "exit-code"} {
		ctl(t, m, "start", name)
		waitLog(t, m, name, "ready")
		ctl(t, m, "stop", name)
		if got := ctl(t, m, "show", name, "-p", "ActiveState,Result"); got != "0 Result="+result+"\nActiveState=failed" {
			t.Errorf("%s after stop: %q", name, got)
		}
	}
}

func waitLog(t *testing.T, m *Manager, name, want string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(20 * time.Second); ; {
		if text, err := m.Log(name, 0); err == nil && strings.Contains(text, want) {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("%s never said %q", name, want)
		}
	}
}

func TestRestart(t *testing.T) {
	m := manager(t)
	write(t, m, "flap.service", "ExecStart=/bin/false\nRestart=always\nRestartSec=1ms\nStartLimitBurst=3\nStartLimitInterval=100")
	ctl(t, m, "start", "flap")
	eventually(t, m, "0 Result=start-limit-hit\nActiveState=failed", "show", "flap", "-p", "ActiveState,Result")
	if got := ctl(t, m, "start", "flap"); !strings.HasPrefix(got, "1 Job for flap.service failed") {
		t.Errorf("start of one that was started too often: %q", got)
	}
	ctl(t, m, "reset-failed", "flap")
	if got := ctl(t, m, "start", "flap"); got != "0" {
		t.Errorf("start after reset-failed: %q", got)
	}
}

// A unit is what it was when it was read, until daemon-reload; one that failed outlives its file.
func TestReload(t *testing.T) {
	m := manager(t)
	write(t, m, "a.service", "ExecStart=/bin/sleep 1000")
	ctl(t, m, "start", "a")
	write(t, m, "a.service", "ExecStart=/bin/sleep 2000\nRestart=always")
	if got := ctl(t, m, "show", "a", "-p", "Restart"); got != "0 Restart=no" {
		t.Errorf("before daemon-reload: %q", got)
	}
	ctl(t, m, "daemon-reload")
	if got := ctl(t, m, "show", "a", "-p", "Restart"); got != "0 Restart=always" {
		t.Errorf("after daemon-reload: %q", got)
	}
	ctl(t, m, "kill", "-s", "KILL", "a")
	ctl(t, m, "stop", "a")
	if err := os.Remove(filepath.Join(m.dir, "a.service")); err != nil {
		t.Fatal(err)
	}
	ctl(t, m, "daemon-reload")
	if got := ctl(t, m, "start", "a"); !strings.HasPrefix(got, "5 ") {
		t.Errorf("start without a file: %q", got)
	}

	write(t, m, "b.service", "ExecStart=/bin/false")
	ctl(t, m, "start", "b")
	eventually(t, m, "0 failed", "is-failed", "b")
	if err := os.Remove(filepath.Join(m.dir, "b.service")); err != nil {
		t.Fatal(err)
	}
	ctl(t, m, "daemon-reload")
	if got := ctl(t, m, "is-failed", "b"); got != "0 failed" {
		t.Errorf("failed, and its file gone: %q", got)
	}
	ctl(t, m, "reset-failed", "b")
	if got := ctl(t, m, "is-active", "b"); got != "4 inactive" {
		t.Errorf("after reset-failed: %q", got)
	}
}

func TestEnable(t *testing.T) {
	m := manager(t)
	write(t, m, "a.service", "ExecStart=/bin/sleep 1000")
	if got := ctl(t, m, "enable", "--now", "a"); !strings.Contains(got, "Created symlink") {
		t.Errorf("enable: %q", got)
	}
	if got := ctl(t, m, "is-enabled", "a"); got != "0 enabled" {
		t.Errorf("is-enabled: %q", got)
	}
	again := NewManager(m.reaper, m.dir, m.logs, m.env) // as after a boot
	if err := again.StartEnabled(); err != nil {
		t.Fatal(err)
	}
	if got := ctl(t, again, "is-active", "a"); got != "0 active" {
		t.Errorf("after a boot: %q", got)
	}
	again.Close(t.Context())
	if got := ctl(t, m, "disable", "a"); !strings.Contains(got, "Removed") {
		t.Errorf("disable: %q", got)
	}
}
