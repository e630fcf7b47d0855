package transport_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/transport"
	"github.com/mkesdk/mkesdk/transport/transporttest"
)

// password answers the question for one.
func password(p string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return p, nil }
}

// sudoers connects to a host with a fake sudo.
func sudoers(t *testing.T, script string, ask func(context.Context) (string, error)) (*transport.Client, string) {
	t.Helper()
	dir := fakeSudo(t, script)
	cfg := serve(t, &transporttest.Server{Env: []string{"PATH=" + dir + ":" + os.Getenv("PATH")}})
	cfg.User, cfg.SudoPassword = "ops", ask
	return dial(t, cfg), filepath.Join(dir, "log")
}

// What sudo and sudo-rs say, and what it means.
func TestSudoRefuses(t *testing.T) {
	for says, want := range map[string]error{
		"sudo: a password is required":                                             transport.ErrSudoPassword,
		"sudo: interactive authentication is required":                             transport.ErrSudoPassword,
		"sudo: sorry, you must have a tty to run sudo":                             transport.ErrSudoTTY,
		"ops is not in the sudoers file.":                                          transport.ErrSudoDenied,
		"Sorry, user ops may not run sudo on h1.":                                  transport.ErrSudoDenied,
		"Sorry, user ops is not allowed to execute '/bin/sh -c' as root on h1.":    transport.ErrSudoDenied,
		"sudo: I'm sorry ops. I'm afraid I can't do that":                          transport.ErrSudoDenied,
		"sudo: /etc/sudo.conf is owned by uid 1000, should be 0":                   transport.ErrSudo,
		"sudo: the \"no new privileges\" flag is set, which prevents sudo running": transport.ErrSudo,
	} {
		c, _ := sudoers(t, "cat >/dev/null; echo '"+strings.ReplaceAll(says, "'", `'\''`)+"' >&2; exit 1\n", nil)
		err := c.Run(t.Context(), transport.Command{Args: []string{"false"}, Sudo: true, Stdin: strings.NewReader("input")})
		if _, ran := errors.AsType[*transport.ExitError](err); ran || !errors.Is(err, want) || !errors.Is(err, transport.ErrSudo) {
			t.Errorf("%q: got %v, want %v", says, err, want)
		}
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%v\ndoes not have what sudo said: %q", err, says)
		}
	}
}

func TestSudoMissing(t *testing.T) {
	dir := fakeSudo(t, "")
	if err := os.Remove(filepath.Join(dir, "sudo")); err != nil {
		t.Fatal(err)
	}
	cfg := serve(t, &transporttest.Server{Env: []string{"PATH=" + dir}})
	cfg.User = "ops"
	err := dial(t, cfg).Run(t.Context(), transport.Command{Args: []string{"true"}, Sudo: true})
	if !errors.Is(err, transport.ErrSudoMissing) {
		t.Errorf("got %v, want ErrSudoMissing", err)
	}
}

// wants is a sudo that wants a password, as the real one asks: three times, unless its input ends.
const wants = `[ "$1" = -n ] && { echo "sudo: a password is required" >&2; exit 1; }
for i in 1 2 3; do
	printf %s "$3" >&2
	IFS= read -r got || { echo "sudo: no password was provided" >&2; exit 1; }
	echo "tried $got" >>"${0%/*}/tries"
	[ "$got" = "s3cret pass" ] && break
	echo "Sorry, try again." >&2
	[ $i = 3 ] && { echo "sudo: 3 incorrect password attempts" >&2; exit 1; }
done
`

func TestSudoPassword(t *testing.T) {
	var asked atomic.Int32
	c, log := sudoers(t, wants+runs, func(context.Context) (string, error) {
		asked.Add(1)
		return "s3cret pass", nil
	})
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			out, err := transport.Output(t.Context(), c, transport.Command{
				Args: []string{"sh", "-c", "id -u; cat; env; cat /proc/$$/cmdline"}, Sudo: true, Stdin: strings.NewReader("the input\n"),
			})
			if err != nil || !strings.HasPrefix(out, "0\nthe input\n") || strings.Contains(out, "s3cret") {
				t.Errorf("Output = %q, %v", out, err)
			}
		})
	}
	wg.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times for the password", n)
	}
	if data, err := os.ReadFile(log); err != nil || strings.Contains(string(data), "s3cret") {
		t.Errorf("the password is among sudo's arguments: %s, %v", data, err)
	}
}

// A wrong password is tried once, however many commands want it.
func TestSudoWrongPassword(t *testing.T) {
	c, log := sudoers(t, wants+runs, password("wr0ng pass"))
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			err := c.Run(t.Context(), transport.Command{Args: []string{"true"}, Sudo: true, Stdin: strings.NewReader("a\nb\nc\n")})
			if !errors.Is(err, transport.ErrSudoPassword) || strings.Contains(err.Error(), "wr0ng") {
				t.Errorf("got %v, want ErrSudoPassword, without the password", err)
			}
		})
	}
	wg.Wait()
	tries, err := os.ReadFile(filepath.Join(filepath.Dir(log), "tries"))
	if err != nil || string(tries) != "tried wr0ng pass\n" {
		t.Errorf("sudo was given %q, %v; want the wrong password once", tries, err)
	}
	// Nothing hangs on to the connection.
	if err := c.Run(t.Context(), transport.Command{Args: []string{"true"}}); err != nil {
		t.Error(err)
	}
}

// A sudo that needs no password is not given one, and its command does not read one.
func TestSudoPasswordNotNeeded(t *testing.T) {
	c, _ := sudoers(t, runs, func(context.Context) (string, error) {
		t.Error("asked for a password that nobody wants")
		return "x", nil
	})
	out, err := transport.Output(t.Context(), c, transport.Command{Args: []string{"cat"}, Sudo: true, Stdin: strings.NewReader("in")})
	if err != nil || out != "in" {
		t.Errorf("Output = %q, %v", out, err)
	}
}

// A PAM module may ask in its own words.
func TestSudoForeignPrompt(t *testing.T) {
	c, _ := sudoers(t, `printf 'Password for ops@EXAMPLE: ' >&2; IFS= read -r got; [ "$got" = "s3cret pass" ] || exit 1`+runs, password("s3cret pass"))
	out, err := transport.Output(t.Context(), c, transport.Command{Args: []string{"cat"}, Sudo: true, Stdin: strings.NewReader("in")})
	if err != nil || out != "in" {
		t.Errorf("Output = %q, %v", out, err)
	}
}

func TestSudoAskFails(t *testing.T) {
	no := errors.New("nobody is there")
	c, _ := sudoers(t, wants+runs, func(context.Context) (string, error) { return "", no })
	for range 2 {
		if err := c.Run(t.Context(), transport.Command{Args: []string{"true"}, Sudo: true}); !errors.Is(err, no) || !errors.Is(err, transport.ErrSudoPassword) {
			t.Errorf("got %v", err)
		}
	}
	// One who does not answer holds up nobody for longer than the context.
	c, _ = sudoers(t, wants+runs, func(ctx context.Context) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	start := time.Now()
	cutOff(t, func(ctx context.Context) error {
		return c.Run(ctx, transport.Command{Args: []string{"true"}, Sudo: true})
	})
	if took := time.Since(start); took > patience+grace {
		t.Errorf("took %v", took)
	}
}
