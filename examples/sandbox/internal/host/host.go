// Package host makes one sandbox host out of namespaces: a machine with its own files, address,
// init system and SSH server, on the kernel and the programs of the machine it runs on.
//
// The supervisor's side is Machine; what runs inside, as the host's PID 1, is InitMain.
package host

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/initd"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/reap"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/wire"
)

// The SSH servers that a host may run.
const (
	OpenSSH = "openssh" // the machine's sshd
	Builtin = "builtin" // the server in this program
)

// Shape is what a host passes for. The zero value is an Ubuntu 24.04 with 16 GiB of memory and
// 64 GiB of disk.
type Shape struct {
	OSRelease   string // text of /etc/os-release
	MemoryBytes int64  // what /proc/meminfo says
	DataBytes   int64  // size of the file system at /var/lib
	TmpNoExec   bool   // nothing in /tmp can be executed
	Hostname    string // kernel host name, where it is not the host's name in the sandbox
}

// Config is a host to make.
type Config struct {
	Name     string
	Shape    Shape
	Hosts    string            // text of /etc/hosts
	Programs map[string]string // put, read-only, into ProgramDir: name to path on the machine
	SSH      string            // OpenSSH or Builtin
	HostKeys map[string][]byte // private keys in OpenSSH form, by file name
	Login    string            // authorized_keys of root and admin
	Forward  bool              // passes on packets between its networks
}

// ProgramDir is where a host has the sandbox's own programs.
const ProgramDir = "/usr/lib/mkesdk-sandbox"

// Program is the name of the sandbox's own binary in ProgramDir.
const Program = "sandbox"

// Machine is a host as its supervisor has it. Its disk outlives a reboot.
type Machine struct {
	cfg       Config
	disk      string
	machineID string
	reaper    *reap.Reaper
	log       *os.File

	mu   sync.Mutex
	proc *reap.Process // nil while the host is down
}

// New makes a host's disk below dir, which is in a mount namespace of the caller's own. The host
// is down until Boot. What its init says goes to log.
func New(r *reap.Reaper, dir string, cfg Config, log *os.File) (*Machine, error) {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	m := &Machine{cfg: cfg, disk: filepath.Join(dir, cfg.Name), machineID: hex.EncodeToString(id), reaper: r, log: log}
	if err := m.makeDisk(); err != nil {
		return nil, fmt.Errorf("host %s: disk: %w", cfg.Name, err)
	}
	return m, nil
}

// Name is the host's name in the sandbox.
func (m *Machine) Name() string { return m.cfg.Name }

// ID is the host's /etc/machine-id.
func (m *Machine) ID() string { return m.machineID }

// bootMessage is what the supervisor tells a host's init before anything else.
type bootMessage struct {
	Config
	Disk      string
	MachineID string
}

// bootReply is what init says once the host is up, or why it is not.
type bootReply struct{ Failure *wire.Failure }

// Boot starts the host. attach is called with the host's process number while the host waits, to
// give it its network. Boot returns when the host's init runs and its services are started.
func (m *Machine) Boot(ctx context.Context, attach func(pid int) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.proc != nil {
		return fmt.Errorf("host %s is up already", m.cfg.Name)
	}
	ours, theirs, err := SocketPair()
	if err != nil {
		return err
	}
	defer ours.Close()
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{"/sbin/init"}, Env: []string{}, Dir: "/",
		Stdout: m.log, Stderr: m.log, ExtraFiles: []*os.File{theirs},
		SysProcAttr: &syscall.SysProcAttr{
			Setsid: true,
			Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET |
				syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWCGROUP,
		},
	}
	proc, err := startConfined(m.reaper, cmd)
	_ = theirs.Close()
	if err != nil {
		return fmt.Errorf("host %s: start: %w", m.cfg.Name, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = ours.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := m.bring(ours, proc.Pid, attach); err != nil {
		_ = proc.Signal(syscall.SIGKILL)
		<-proc.Done()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("host %s: boot: %w", m.cfg.Name, err)
	}
	m.proc = proc
	return nil
}

func (m *Machine) bring(c *net.UnixConn, pid int, attach func(int) error) error {
	if err := attach(pid); err != nil {
		return err
	}
	if err := wire.Send(c, bootMessage{Config: m.cfg, Disk: m.disk, MachineID: m.machineID}); err != nil {
		return err
	}
	var r bootReply
	if _, err := wire.Receive(c, &r); err != nil {
		return fmt.Errorf("init ended before the host was up: %w", err)
	}
	return r.Failure.Err()
}

// SocketPair is a connection, and its other end as a file to hand to a process that is started.
func SocketPair() (*net.UnixConn, *os.File, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socket pair: %w", err)
	}
	mine := os.NewFile(uintptr(fds[0]), "init")
	defer mine.Close()
	theirs := os.NewFile(uintptr(fds[1]), "supervisor")
	c, err := net.FileConn(mine)
	if err != nil {
		_ = theirs.Close()
		return nil, nil, fmt.Errorf("socket pair: %w", err)
	}
	return c.(*net.UnixConn), theirs, nil
}

// Pid is the process number of the host's init, 0 while the host is down.
func (m *Machine) Pid() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.proc == nil {
		return 0
	}
	select {
	case <-m.proc.Done():
		return 0
	default:
		return m.proc.Pid
	}
}

// ErrDown says that a host is not running.
var ErrDown = errors.New("the host is down")

// Ended is closed when the host that runs now has ended; nil while it is down.
func (m *Machine) Ended() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.proc == nil {
		return nil
	}
	return m.proc.Done()
}

// Rebooting reports, once Ended is closed, whether the host asked to be started again.
func (m *Machine) Rebooting() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.proc == nil {
		return false
	}
	select {
	case <-m.proc.Done():
		ws := m.proc.Status()
		return ws.Exited() && ws.ExitStatus() == exitReboot
	default:
		return false
	}
}

// Kill ends the host at once, as a power cut does: every process of it, and its network.
func (m *Machine) Kill() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.proc == nil {
		return nil
	}
	if err := m.proc.Signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("host %s: %w", m.cfg.Name, err)
	}
	<-m.proc.Done()
	m.proc = nil
	return nil
}

// Shutdown stops the host's services and then the host. It gives up waiting for the services
// when ctx ends, and ends the host all the same.
func (m *Machine) Shutdown(ctx context.Context) error {
	if c, err := m.Conn(ctx); err == nil {
		stop := context.AfterFunc(ctx, func() { _ = c.Close() })
		if err := wire.Send(c, initd.Request{Shutdown: true}); err == nil {
			var r initd.Reply
			_, _ = wire.Receive(c, &r) // whatever it says, the host ends now
		}
		stop()
		_ = c.Close()
	}
	return m.Kill()
}

// Conn connects to the host's init.
func (m *Machine) Conn(ctx context.Context) (*net.UnixConn, error) {
	root, err := m.root()
	if err != nil {
		return nil, err
	}
	return wire.Dial(ctx, filepath.Join(root, initd.Socket))
}

// root is the host's root directory as the supervisor reaches it.
func (m *Machine) root() (string, error) {
	pid := m.Pid()
	if pid == 0 {
		return "", fmt.Errorf("host %s: %w", m.cfg.Name, ErrDown)
	}
	return filepath.Join("/proc", strconv.Itoa(pid), "root"), nil
}
