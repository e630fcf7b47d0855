package transport_test

import (
	"os"
	"testing"

	"github.com/mkesdk/mkesdk/transport"
	"github.com/mkesdk/mkesdk/transport/transporttest"
)

// The contract of a Conn, kept by what each kind of host and way to it makes of one.

func TestConnServer(t *testing.T) {
	cfg := serve(t, &transporttest.Server{})
	transporttest.TestConn(t, t.TempDir(), func(t *testing.T) transport.Conn { return dial(t, cfg) })
}

func TestConnFewSessions(t *testing.T) {
	cfg := serve(t, &transporttest.Server{MaxSessions: 1})
	transporttest.TestConn(t, t.TempDir(), func(t *testing.T) transport.Conn { return dial(t, cfg) })
}

func TestConnNoisyLogin(t *testing.T) {
	cfg := serve(t, &transporttest.Server{
		Banner: "Authorized use only.\n",
		Shell:  []string{"/bin/sh", "-c", `echo "{}"; printf 'noise without an end'; echo complaints >&2; trap 'echo after' EXIT; eval "$1"`, "sh"},
	})
	transporttest.TestConn(t, t.TempDir(), func(t *testing.T) transport.Conn { return dial(t, cfg) })
}

func TestConnBastions(t *testing.T) {
	near, far, host := serve(t, &transporttest.Server{}), serve(t, &transporttest.Server{}), serve(t, &transporttest.Server{})
	near.User, far.User = "near", "far"
	far.Bastion, host.Bastion = &near, &far
	transporttest.TestConn(t, t.TempDir(), func(t *testing.T) transport.Conn { return dial(t, host) })
}

func TestConnSudo(t *testing.T) {
	dir := fakeSudo(t, runs)
	cfg := serve(t, &transporttest.Server{Env: []string{"PATH=" + dir + ":" + os.Getenv("PATH")}})
	cfg.User = "ops"
	transporttest.TestConn(t, t.TempDir(), func(t *testing.T) transport.Conn { return dial(t, cfg) })
}

func TestConnSudoPassword(t *testing.T) {
	dir := fakeSudo(t, `[ "$1 $2" = "-S -p" ] || { echo "sudo: a password is required" >&2; exit 1; }
printf %s "$3" >&2
IFS= read -r got
[ "$got" = "correct horse" ] || { echo "Sorry, try again." >&2; printf %s "$3" >&2; read -r got; exit 1; }
`+runs)
	cfg := serve(t, &transporttest.Server{Env: []string{"PATH=" + dir + ":" + os.Getenv("PATH")}})
	cfg.User = "ops"
	cfg.SudoPassword = password("correct horse")
	transporttest.TestConn(t, t.TempDir(), func(t *testing.T) transport.Conn { return dial(t, cfg) })
}

func TestConnOpenSSH(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("not run as root, and sshd lets its own user in only, so files cannot be written as root")
	}
	cfg := openSSH(t)
	transporttest.TestConn(t, t.TempDir(), func(t *testing.T) transport.Conn { return dial(t, cfg) })
}

func TestConnOpenSSHBastionFewSessions(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("not run as root, and sshd lets its own user in only, so files cannot be written as root")
	}
	bastion, cfg := openSSH(t), openSSH(t, "MaxSessions 2")
	cfg.Bastion = &bastion
	transporttest.TestConn(t, t.TempDir(), func(t *testing.T) transport.Conn { return dial(t, cfg) })
}
