package sandboxtest_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/mkesdk/mkesdk/examples/sandbox/sandboxtest"
)

// login is a plain SSH client: what is tested here must not need the SDK to be right.
func login(t *testing.T, c *sandboxtest.Cluster, user, addr string, conn net.Conn) *ssh.Client {
	t.Helper()
	pem, err := os.ReadFile(c.Key())
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(pem)
	if err != nil {
		t.Fatal(err)
	}
	check, err := knownhosts.New(c.KnownHosts())
	if err != nil {
		t.Fatal(err)
	}
	cc, chans, reqs, err := ssh.NewClientConn(conn, addr+":22", &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: check,
	})
	if err != nil {
		t.Fatal(err)
	}
	client := ssh.NewClient(cc, chans, reqs)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func dial(t *testing.T, c *sandboxtest.Cluster, user, addr string) *ssh.Client {
	t.Helper()
	conn, err := c.Dial(t.Context(), "tcp", addr+":22")
	if err != nil {
		t.Fatal(err)
	}
	return login(t, c, user, addr, conn)
}

func output(t *testing.T, client *ssh.Client, cmd string) string {
	t.Helper()
	s, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var stderr bytes.Buffer
	s.Stderr = &stderr
	out, err := s.Output(cmd)
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// reaches finds out whether a host gets an answer from an address, be it that the port is closed.
func reaches(h *sandboxtest.Host, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	out, err := h.Run("timeout", "2", "bash", "-c", "exec 3<>/dev/tcp/"+host+"/"+port)
	if strings.Contains(out, "Connection refused") {
		return nil
	}
	return err
}

// servers are the SSH servers that this machine can run.
func servers(t *testing.T) []string {
	if _, err := os.Stat("/usr/sbin/sshd"); err != nil {
		t.Log("no OpenSSH on this machine: only the built-in server is tried")
		return []string{sandboxtest.Builtin}
	}
	return []string{sandboxtest.OpenSSH, sandboxtest.Builtin}
}

func TestSSH(t *testing.T) {
	for _, server := range servers(t) {
		t.Run(server, func(t *testing.T) {
			c := sandboxtest.New(t, sandboxtest.Config{Spare: 1, Bastion: true, SSH: server, HostsOnly: true})
			h1 := dial(t, c, "root", "10.99.0.21")
			if got := output(t, h1, "hostname; id -u; echo $PATH"); got != "h1\n0\n/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" {
				t.Errorf("on h1: %q", got)
			}

			// h4 cannot be reached but through the bastion.
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if conn, err := c.Dial(ctx, "tcp", "10.98.0.24:22"); err == nil {
				_ = conn.Close()
				t.Error("h4 is reached without the bastion")
			}
			bastion := dial(t, c, "root", "10.99.0.5")
			inner, err := bastion.Dial("tcp", "10.98.0.24:22")
			if err != nil {
				t.Fatal(err)
			}
			h4 := login(t, c, "root", "10.98.0.24", inner)
			if got := output(t, h4, "hostname"); got != "h4" {
				t.Errorf("behind the bastion is %q", got)
			}

			// What h4 needs it reaches: a controller, and the registry's address.
			for _, addr := range []string{"10.99.0.11:22", "10.99.0.2:1"} {
				if err := reaches(c.Host("h4"), addr); err != nil {
					t.Errorf("h4 to %s: %v", addr, err)
				}
			}

			output(t, h4, "true\n# two lines")
			log := c.Host("h4").Commands()
			if len(log) != 2 || log[0].Line != "hostname" || log[1].Line != "true\n# two lines" || log[0].User != "root" {
				t.Errorf("the command log of h4 is %+v", log)
			}
			if since := time.Since(log[0].Time); since < 0 || since > time.Minute {
				t.Errorf("the first command was %v ago", since)
			}
		})
	}
}

func TestDialTellsErrorsApart(t *testing.T) {
	c := sandboxtest.New(t, sandboxtest.Config{HostsOnly: true})
	_, err := c.Dial(t.Context(), "tcp", "10.99.0.11:1")
	if err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("a closed port: %v", err)
	}
	c.Host("c1").Cut()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := c.Dial(ctx, "tcp", "10.99.0.11:22"); err == nil {
		t.Error("a host that is cut off answers")
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("a dial went on for %v after its context had ended", took)
	}
}
