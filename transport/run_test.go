package transport_test

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/transport"
	"github.com/mkesdk/mkesdk/transport/transporttest"
)

// A process that a command leaves behind holds its output open, and is not waited for.
func TestLeftBehind(t *testing.T) {
	ways := map[string]transport.Config{"server": serve(t, &transporttest.Server{})}
	if os.Getuid() == 0 {
		t.Run("OpenSSH", func(t *testing.T) { leftBehind(t, openSSH(t)) })
	}
	for name, cfg := range ways {
		t.Run(name, func(t *testing.T) { leftBehind(t, cfg) })
	}
}

func leftBehind(t *testing.T, cfg transport.Config) {
	c := dial(t, cfg)
	start := time.Now()
	out, err := transport.Output(t.Context(), c, transport.Command{Args: []string{"sh", "-c", "sleep 60 & echo $!; exit 0"}})
	if took := time.Since(start); err != nil || took > 20*time.Second {
		t.Errorf("Output = %q, %v, after %v", out, err, took)
	}
	pid, err := strconv.Atoi(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the process it left behind is not there: %v", err)
	}
}

// Whatever the login shell is, commands run and their output is what they print.
func TestLoginShells(t *testing.T) {
	for _, name := range []string{"sh", "bash", "dash", "ksh", "zsh", "fish", "csh", "tcsh", "nu"} {
		t.Run(name, func(t *testing.T) {
			path, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("%s is not installed, so this login shell is not tried", name)
			}
			c := dial(t, serve(t, &transporttest.Server{Shell: []string{path, "-c"}}))
			args := []string{"printf", `%s\0`, "", "a 'b' \"c\"", `\ \\ \'`, "$HOME `id` !x !!", "two\nlines\n", "* ? ~ # %s {a,b} é", strings.Repeat("long '!\n", 2000)}
			out, err := transport.Output(t.Context(), c, transport.Command{Args: args, Sudo: true})
			if want := strings.Join(args[2:], "\x00") + "\x00"; err != nil || out != want {
				t.Errorf("the program got %q, %v", out, err)
			}
			err = c.Run(t.Context(), transport.Command{Args: []string{"sh", "-c", "kill -TERM $$"}})
			if exit, ok := errors.AsType[*transport.ExitError](err); !ok || exit.Signal != "TERM" {
				t.Errorf("a command that was killed: %v", err)
			}
		})
	}
}

// An account that may not run commands is told from a command that fails.
func TestNoLogin(t *testing.T) {
	c := dial(t, serve(t, &transporttest.Server{Shell: []string{"/bin/sh", "-c", "echo This account is currently not available.; exit 1", "sh"}}))
	err := c.Run(t.Context(), transport.Command{Args: []string{"false"}})
	if _, ran := errors.AsType[*transport.ExitError](err); err == nil || ran || !strings.Contains(err.Error(), "currently not available") {
		t.Errorf("got %v", err)
	}
}

// A server that allows fewer sessions than we would like is noticed; no running command suffers.
func TestSessionLimit(t *testing.T) {
	ways := map[string]func(t *testing.T) transport.Config{
		"server": func(t *testing.T) transport.Config { return serve(t, &transporttest.Server{MaxSessions: 2}) },
		"OpenSSH": func(t *testing.T) transport.Config {
			return openSSH(t, "MaxSessions 2")
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			c := dial(t, way(t))
			var wg sync.WaitGroup
			for range 6 {
				wg.Go(func() {
					if err := c.Run(t.Context(), transport.Command{Args: []string{"sleep", "0.2"}}); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		})
	}
	c := dial(t, serve(t, &transporttest.Server{MaxSessions: -1}))
	if err := c.Run(t.Context(), transport.Command{Args: []string{"true"}}); err == nil || !strings.Contains(err.Error(), "opens no session") {
		t.Errorf("a server that allows none: %v", err)
	}
	if _, err := c.Dial(t.Context(), "tcp", "127.0.0.1:1"); errors.Is(err, transport.ErrConnectionLost) {
		t.Errorf("the connection was given up: %v", err)
	}
}

func TestTooLong(t *testing.T) {
	c := dial(t, serve(t, &transporttest.Server{}))
	long := strings.Repeat("x", 100<<10)
	if out, err := transport.Output(t.Context(), c, transport.Command{Args: []string{"echo", long}}); err != nil || out != long {
		t.Errorf("100 KiB: %d bytes, %v", len(out), err)
	}
	if err := c.Run(t.Context(), transport.Command{Args: []string{"true", long + long}}); err == nil || !strings.Contains(err.Error(), "standard input") {
		t.Errorf("200 KiB: %v", err)
	}
}
