package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/initd"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/reap"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/wire"
)

// exitReboot is how init ends when it was asked to start the host again.
const exitReboot = 64

// Path is the PATH of everything on a host.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// InitMain is a host's PID 1: it turns the namespaces that it was started in into the host, runs
// the host's services, and ends only with the host. It returns the exit status.
func InitMain(ctx context.Context) int {
	file := os.NewFile(3, "supervisor")
	if file == nil {
		fmt.Fprintln(os.Stderr, "init: this is started by the sandbox, for a host")
		return 1
	}
	syscall.CloseOnExec(3)
	conn, err := net.FileConn(file)
	_ = file.Close()
	if err != nil {
		fmt.Fprintln(os.Stderr, "init: no supervisor:", err)
		return 1
	}
	code, err := runInit(ctx, conn.(*net.UnixConn))
	if err != nil {
		fmt.Fprintln(os.Stderr, "init:", err)
	}
	return code
}

func runInit(ctx context.Context, c *net.UnixConn) (int, error) {
	defer c.Close()
	var msg bootMessage
	if _, err := wire.Receive(c, &msg); err != nil {
		return 1, err
	}
	// A host is not ended by what a terminal or a careless kill 1 sends. They are caught and not
	// ignored: what is ignored stays so in every process started from here.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE)
	power := make(chan bool, 1)
	err := boot(ctx, msg, power)
	if serr := wire.Send(c, bootReply{Failure: wire.Fail(err)}); serr != nil {
		err = errors.Join(err, serr)
	}
	if err != nil {
		return 1, err
	}
	select {
	case again := <-power:
		if again {
			return exitReboot, nil
		}
		return 0, nil
	case <-ctx.Done():
		return 0, nil
	}
}

func boot(ctx context.Context, msg bootMessage, power chan<- bool) error {
	if err := enterRoot(msg); err != nil {
		return err
	}
	name := msg.Shape.Hostname
	if name == "" {
		name = msg.Name
	}
	if err := unix.Sethostname([]byte(name)); err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	if msg.Forward {
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1\n"), 0o644); err != nil {
			return fmt.Errorf("forwarding: %w", err)
		}
	}
	// What looks at PID 1 is to find systemd.
	if err := os.WriteFile("/proc/self/comm", []byte("systemd"), 0o644); err != nil {
		return fmt.Errorf("process name: %w", err)
	}
	r := reap.New()
	env := []string{"PATH=" + Path, "LANG=C.UTF-8"}
	m := initd.NewManager(r, "/etc/systemd/system", initd.LogDir, env)
	service, err := sshService(msg.Config)
	if err != nil {
		return err
	}
	if err := m.AddBuiltin("ssh", service); err != nil {
		return err
	}
	l, err := wire.Listen(initd.Socket)
	if err != nil {
		return err
	}
	shell := append([]string{"HOME=/root", "USER=root", "LOGNAME=root", "SHELL=" + loginShell()}, env...)
	go func() {
		err := m.Serve(ctx, l, shell, func(again bool) {
			m.Close(ctx)
			power <- again
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	return m.StartEnabled()
}

func loginShell() string {
	if _, err := os.Stat("/bin/bash"); err == nil {
		return "/bin/bash"
	}
	return "/bin/sh"
}

// sshService is the unit of the host's SSH server.
func sshService(cfg Config) (string, error) {
	var start string
	switch cfg.SSH {
	case OpenSSH:
		start = SSHDPath() + " -D -e -f /etc/ssh/sshd_config"
	case Builtin:
		start = filepath.Join(ProgramDir, Program) + " " + SSHDCommand
	default:
		return "", fmt.Errorf("SSH server %q: want %s or %s", cfg.SSH, OpenSSH, Builtin)
	}
	return strings.Join([]string{
		"[Unit]", "Description=OpenBSD Secure Shell server", "StartLimitIntervalSec=0",
		"[Service]", "ExecStart=" + start, "Restart=always", "RestartSec=200ms", "KillMode=process",
	}, "\n"), nil
}
