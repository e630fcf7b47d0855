package k0s

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// unitName is argv[0] of the process that stands for systemd's care of one unit.
const unitName = "test-unit"

func background() context.Context { return context.Background() }

// fakeSystemctl is as much of systemctl as k0s uses. The state of a unit is a file below
// /run/units: the pid of its main process, or how it ended.
func fakeSystemctl(args []string) int {
	unit := args[len(args)-1]
	state := filepath.Join("/run/units", unit)
	switch args[0] {
	case "daemon-reload", "enable", "disable":
		return 0
	case "reset-failed":
		os.Remove(state) // may not be there
		return 0
	case "is-active":
		word := unitState(state)
		fmt.Println(word)
		if word == "active" {
			return 0
		}
		return 3
	case "start":
		return startUnit(unit, state)
	case "stop":
		pid, running := unitPID(state)
		if !running {
			return 0
		}
		syscall.Kill(pid, syscall.SIGTERM) // it may just have ended
		for end := time.Now().Add(30 * time.Second); unitState(state) == "active"; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				return 1
			}
		}
		return 0
	}
	fmt.Fprintln(os.Stderr, "systemctl of the test: unknown", args)
	return 1
}

func startUnit(unit, state string) int {
	cmd := exec.Command("/proc/self/exe", unit)
	cmd.Args[0] = unitName
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(state); err == nil {
			return 0
		}
	}
	return 1
}

// fakeUnit runs a unit's program and notes how it ended.
func fakeUnit(unit string) int {
	state := filepath.Join("/run/units", unit)
	text, err := os.ReadFile(filepath.Join(unitDir, unit))
	if err != nil {
		return 1
	}
	var argv []string
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "ExecStart="); ok {
			for word := range strings.FieldsSeq(v) {
				argv = append(argv, strings.ReplaceAll(word, `\x20`, " "))
			}
		}
	}
	log, err := os.OpenFile(state+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 1
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, "/"
	err = cmd.Start()
	if err == nil {
		err = errors.Join(os.WriteFile(state, []byte(strconv.Itoa(cmd.Process.Pid)), 0o600), cmd.Wait())
	}
	if err != nil {
		return bool2int(os.WriteFile(state, []byte("failed"), 0o600) != nil)
	}
	return bool2int(os.Remove(state) != nil)
}

func bool2int(b bool) int {
	if b {
		return 1
	}
	return 0
}

func unitPID(state string) (int, bool) {
	text, err := os.ReadFile(state)
	if err != nil {
		return 0, false
	}
	pid, err := strconv.Atoi(string(text))
	return pid, err == nil
}

func unitState(state string) string {
	text, err := os.ReadFile(state)
	switch {
	case err != nil:
		return "inactive"
	case string(text) == "failed":
		return "failed"
	}
	return "active"
}
