package k0s

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// unitDir is where systemd looks for units of the administrator.
const unitDir = "/etc/systemd/system"

// errNotInstalled means that there is no service of that role.
var errNotInstalled = errors.New("the service is not installed")

// serviceState is what systemd says of a service of k0s.
type serviceState int

const (
	stateStopped serviceState = iota
	stateRunning
)

// service is one of the two services that k0s can be: k0scontroller or k0sworker.
type service string

func serviceOf(role string) service { return service("k0s" + role) }

func (s service) unit() string { return string(s) + ".service" }
func (s service) path() string { return filepath.Join(unitDir, s.unit()) }

// state asks systemd. A service that systemd remembers as failed is one, even if its unit is gone.
func (s service) state(ctx context.Context) (serviceState, error) {
	out, err := exec.CommandContext(ctx, "systemctl", "is-active", s.unit()).Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return stateStopped, fmt.Errorf("no init system that the stand-in knows: %w", err)
	}
	switch word := strings.TrimSpace(string(out)); {
	case strings.HasPrefix(word, "active"), strings.HasPrefix(word, "activating"):
		return stateRunning, nil
	case strings.HasPrefix(word, "failed"):
		return stateStopped, errors.New("service in failed state")
	case strings.HasPrefix(word, "inactive"):
		if _, err := os.Stat(s.path()); err == nil {
			return stateStopped, nil
		}
	}
	return stateStopped, errNotInstalled
}

// installedService finds the service of this host.
func installedService(ctx context.Context) (service, serviceState, error) {
	for _, role := range []string{"controller", "worker"} {
		s := serviceOf(role)
		state, err := s.state(ctx)
		if errors.Is(err, errNotInstalled) {
			continue
		}
		return s, state, err
	}
	return "", stateStopped, errors.New("k0s has not been installed as a service")
}

// systemctl runs one action; its error is the exit status alone, as k0s prints it.
func systemctl(ctx context.Context, args ...string) error {
	return exec.CommandContext(ctx, "systemctl", args...).Run()
}

// install writes the unit and enables it.
func (s service) install(ctx context.Context, program string, args, env []string) error {
	if _, err := os.Stat(s.path()); err == nil {
		//lint:ignore ST1005 this is how k0s says it
		return fmt.Errorf("Init already exists: %s", s.path())
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(s.path(), []byte(unitText(program, args, env)), 0o644); err != nil {
		return err
	}
	if err := systemctl(ctx, "enable", s.unit()); err != nil {
		return err
	}
	return systemctl(ctx, "daemon-reload")
}

// uninstall disables the service and removes its unit.
func (s service) uninstall(ctx context.Context) error {
	if _, err := os.Stat(s.path()); errors.Is(err, fs.ErrNotExist) {
		return errNotInstalled
	}
	if err := systemctl(ctx, "disable", s.unit()); err != nil {
		return err
	}
	if err := os.Remove(s.path()); err != nil {
		return err
	}
	return systemctl(ctx, "daemon-reload")
}

// unitText is the unit as k0s writes it, to the blanks at the ends of lines.
func unitText(program string, args, env []string) string {
	var b strings.Builder
	word := func(s string) string { return strings.ReplaceAll(s, " ", `\x20`) }
	b.WriteString("[Unit]\nDescription=k0s - Zero Friction Kubernetes\nDocumentation=https://docs.k0sproject.io\n")
	fmt.Fprintf(&b, "ConditionFileIsExecutable=%s\n\n", word(program))
	b.WriteString("After=network-online.target \nWants=network-online.target \n\n")
	fmt.Fprintf(&b, "[Service]\nStartLimitInterval=5\nStartLimitBurst=10\nExecStart=%s", word(program))
	for _, arg := range args {
		b.WriteString(" " + word(arg))
	}
	for _, e := range env {
		fmt.Fprintf(&b, "\nEnvironment=%q", e)
	}
	b.WriteString("\n\nRestartSec=10\nDelegate=yes\nKillMode=process\nLimitCORE=infinity\nTasksMax=infinity\nTimeoutStartSec=0\nLimitNOFILE=999999\nRestart=always\n")
	b.WriteString("\n[Install]\nWantedBy=multi-user.target\n")
	return b.String()
}
