package transport_test

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/mkesdk/mkesdk/transport"
)

// openSSH runs a real sshd on the loopback, with more lines of configuration, for as long
// as the test does. It skips the test where there is none.
func openSSH(t *testing.T, more ...string) transport.Config {
	t.Helper()
	sshd := ""
	for _, path := range []string{"/usr/sbin/sshd", "/usr/local/sbin/sshd", "/usr/bin/sshd"} {
		if _, err := os.Stat(path); err == nil {
			sshd = path
			break
		}
	}
	if sshd == "" {
		t.Skip("no sshd is installed, so OpenSSH itself is not tried")
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Mkdir("/run/sshd", 0o755); err == nil { // where sshd locks itself in; the package makes it when the service starts
			t.Cleanup(func() { _ = os.Remove("/run/sshd") })
		}
	}
	dir := t.TempDir()
	hostKey, clientKey := newKeyFile(t, filepath.Join(dir, "host"), ""), newKeyFile(t, filepath.Join(dir, "client"), "")
	authorized := filepath.Join(dir, "authorized")
	if err := os.WriteFile(authorized, ssh.MarshalAuthorizedKey(clientKey.PublicKey()), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "sshd_config")
	lines := append(more, fmt.Sprintf("Port %d", port), "ListenAddress 127.0.0.1", "HostKey "+filepath.Join(dir, "host"), "PidFile none", "SetEnv HOME="+dir,
		"AuthorizedKeysFile "+authorized, "StrictModes no", "UsePAM no", "PermitRootLogin prohibit-password", "PasswordAuthentication no", "UseDNS no")
	if err := os.WriteFile(config, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), sshd, "-D", "-e", "-f", config)
	cmd.Stderr = &log
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("sshd: %s", &log)
		}
	})
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	deadline := time.After(20 * time.Second)
	for {
		if conn, err := net.Dial("tcp", addr); err == nil {
			_ = conn.Close()
			break
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("sshd ended: %v: %s", err, &log)
		case <-deadline:
			t.Fatalf("sshd does not listen: %s", &log)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return transport.Config{
		Address: addr, User: me.Username, Auth: transport.Auth{KeyFile: filepath.Join(dir, "client")}, HostKeys: transport.Pinned(hostKey.PublicKey()),
	}
}

// newKeyFile writes a fresh private key, encrypted if there is a passphrase.
func newKeyFile(t testing.TB, name, passphrase string) ssh.Signer {
	t.Helper()
	key, signer := rawKey(t)
	var block *pem.Block
	var err error
	if passphrase == "" {
		block, err = ssh.MarshalPrivateKey(key, "")
	} else {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return signer
}

// fakeSudo makes a directory with a sudo that wants a password, if one is given, and with
// an id that believes it. It writes what it is asked to log.
func fakeSudo(t *testing.T, script string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{
		"id":   "#!/bin/sh\n[ \"$1\" = -u ] && { [ -n \"$FAKE_ROOT\" ] && echo 0 || echo 1000; exit; }\nexec /usr/bin/id \"$@\"\n",
		"sudo": "#!/bin/sh\necho \"$@\" >>" + dir + "/log\n" + script,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// runs is the end of a fake sudo that lets the command run.
const runs = `
while [ "$1" != -- ]; do shift; done
shift
FAKE_ROOT=1
export FAKE_ROOT
exec "$@"
`

func pemText(block *pem.Block) []byte { return pem.EncodeToMemory(block) }
