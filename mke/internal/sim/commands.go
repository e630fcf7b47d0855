package sim

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/mkesdk/mkesdk/hosts/hoststest"
	"github.com/mkesdk/mkesdk/transport"
	"github.com/mkesdk/mkesdk/transport/transporttest"
)

// conn is one connection to a host: closing it leaves the host as it is.
type conn struct{ host *Host }

func (c *conn) String() string { return c.host.conn.String() }
func (c *conn) Close() error   { return nil }
func (c *conn) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return c.host.conn.Dial(ctx, network, addr)
}

func (c *conn) Run(ctx context.Context, cmd transport.Command) error {
	h := c.host
	h.mu.Lock()
	h.settle()
	m := h.m
	if cmd.Effect != transport.EffectNone {
		h.log = append(h.log, describe(cmd))
	}
	h.mu.Unlock()
	if ok, err := m.Answer(cmd); ok {
		return err
	}
	return h.conn.Run(ctx, cmd)
}

// describe is a command as a transcript shows it. The script that writes a file
// has many words; which file it writes is what matters.
func describe(cmd transport.Command) string {
	if len(cmd.Args) > 5 && cmd.Args[1] == "-c" {
		return strings.ReplaceAll(fmt.Sprintf("write %s, mode %s", cmd.Args[4], cmd.Args[5]), sum("k0s " + K0sVersion)[:12], "DIGEST")
	}
	return shown(cmd)
}

// handle teaches the host its commands. One that is not here fails the test.
func (h *Host) handle() {
	on := func(f func(cmd transport.Command) error, prefix ...string) {
		h.conn.Handle(func(_ context.Context, cmd transport.Command) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			return f(cmd)
		}, prefix...)
	}
	ok := func(transport.Command) error { return nil }
	h.conn.Answer("0\n", "id", "-u")
	on(ok, "mkdir", "-p", "-m", "0755")
	on(ok, "rmdir")
	on(func(cmd transport.Command) error {
		h.conn.RemoveFile(cmd.Args[len(cmd.Args)-1])
		return nil
	}, "rm", "-f")
	on(func(cmd transport.Command) error {
		if h.m.Files[cmd.Args[2]] == "" {
			return transporttest.Exit(1)
		}
		return nil
	}, "test", "-s")
	on(h.move, "mv", "-f")
	on(func(cmd transport.Command) error {
		if !h.has(cmd.Args[1]) {
			fmt.Fprintf(cmd.Stderr, "sha256sum: %s: No such file or directory\n", cmd.Args[1])
			return transporttest.Exit(1)
		}
		_, err := fmt.Fprintf(cmd.Stdout, "%s  %s\n", sum("k0s "+K0sVersion), cmd.Args[1])
		return err
	}, "sha256sum")
	on(ok, "systemctl", "reset-failed")
	on(h.version) // the staged binary has a name of its own, so anything may be it
	on(h.install, k0sFile, "install", "worker")
	on(h.start, k0sFile, "start")
	on(h.stop, k0sFile, "stop")
	on(h.w.createToken, k0sFile, "token", "create", "--role", "worker")
	on(h.w.invalidateToken, k0sFile, "token", "invalidate")
}

func (h *Host) version(cmd transport.Command) error {
	f, ok := h.conn.File(cmd.Args[0])
	if !ok || len(cmd.Args) != 2 || cmd.Args[1] != "version" {
		h.w.t.Errorf("%s: no such command here: %s", h, cmd)
		return transporttest.Exit(127)
	}
	_, err := io.WriteString(cmd.Stdout, strings.TrimPrefix(f.Data, "k0s ")+"\n")
	return err
}

func (h *Host) move(cmd transport.Command) error {
	from, to := cmd.Args[2], cmd.Args[3]
	f, ok := h.conn.File(from)
	if !ok {
		return transporttest.Exit(1)
	}
	h.conn.RemoveFile(from)
	if to == k0sFile {
		h.m = h.m.WithK0s(strings.TrimPrefix(f.Data, "k0s "))
	}
	return nil
}

func (h *Host) install(cmd transport.Command) error {
	if _, there := h.m.Files[unitFile]; there {
		fmt.Fprintf(cmd.Stderr, "Error: failed to install worker service: Init already exists: %s\n", unitFile)
		return transporttest.Exit(1)
	}
	h.m = h.m.WithService("worker", "inactive", cmd.Args[3:]...)
	return nil
}

func (h *Host) start(cmd transport.Command) error {
	if _, there := h.m.Files[unitFile]; !there {
		io.WriteString(cmd.Stderr, "Error: k0s has not been installed as a service\n")
		return transporttest.Exit(1)
	}
	if !h.started.IsZero() {
		io.WriteString(cmd.Stderr, "Error: already running\n")
		return transporttest.Exit(1)
	}
	h.started, h.deaf, h.m.StatusRole = time.Now(), false, "worker"
	h.m.Services[unit] = "active"
	if f, ok := h.conn.File(tokenFile); ok {
		h.token = tokenIDOf(f.Data)
	}
	return nil
}

func (h *Host) stop(transport.Command) error {
	h.started, h.m.StatusRole = time.Time{}, ""
	h.m.Services[unit] = "inactive"
	return nil
}

func (w *World) createToken(cmd transport.Command) error {
	w.tokens.mu.Lock()
	defer w.tokens.mu.Unlock()
	w.tokens.made++
	id := fmt.Sprintf("tok%03d", w.tokens.made)
	token, err := hoststest.Token([]byte(ThisCA), "https://10.0.0.11:6443", id+".0123456789abcdef")
	if err != nil {
		return err
	}
	w.tokens.valid[id] = true
	_, err = fmt.Fprintln(cmd.Stdout, token)
	return err
}

func (w *World) invalidateToken(cmd transport.Command) error {
	w.tokens.mu.Lock()
	defer w.tokens.mu.Unlock()
	delete(w.tokens.valid, cmd.Args[len(cmd.Args)-1])
	return nil
}

// tokenIDOf returns the id of a join token.
func tokenIDOf(token string) string {
	_, secret, _ := strings.Cut(hoststest.DecodeToken(token), "token: ")
	id, _, _ := strings.Cut(strings.TrimSpace(secret), ".")
	return id
}
