package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/mkesdk/mkesdk/examples/sandbox/sandboxtest"
)

// testSecrets adds two hosts, one with mkectl and one with the SDK, both told to log all they can,
// and then looks for what nobody may get to see.
func testSecrets(t *testing.T, b *bed) {
	b.placeK0s("h13", "h14")
	watched := []string{"h13", "h14", "c1"}
	stop := b.sample(watched...)
	r := b.run("-l", "debug", "node", "add", "--hosts-path", b.HostsYAMLOf("h13"))
	again := b.run("-o", "json", "-l", "debug", "node", "add", "--hosts-path", b.HostsYAMLOf("h13"))
	c := b.caller()
	result := c.add("h14")
	stop()
	r.ended(t, 0)
	again.ended(t, 0)

	told := map[string]string{
		"mkectl's standard output": r.out, "mkectl's standard error": r.err,
		"mkectl's JSON": again.out, "mkectl's standard error beside JSON": again.err,
		"the SDK's log": c.log.String(), "the SDK's trace": fmt.Sprintf("%+v", c.calls),
		"the SDK's events": asJSON(t, c.events), "the SDK's result": asJSON(t, result),
		"the audit log": b.Host("c1").Exec("cat", auditLog),
	}
	for _, name := range append(watched, "h1", "bastion", "h4") {
		h := b.Host(name)
		told["the commands told to "+name] = fmt.Sprint(h.Commands())
		told["the logs of "+name] = h.Sh("cat /var/log/*.log")
	}
	for _, name := range watched {
		told["the processes of "+name] = b.Host(name).Exec("cat", processes)
	}
	// That they were looked at is seen by what has to be there.
	says(t, "mkectl's standard error", r.err, "cmd=", "effect=change")
	says(t, "the SDK's log", c.log.String(), "op=")
	for _, name := range []string{"h13", "h14"} {
		says(t, "the processes of "+name, told["the processes of "+name], "k0s worker ", "--token-file=/etc/k0s/k0stoken")
	}
	says(t, "the processes of c1", told["the processes of c1"], "kube-apiserver ", "k0s controller ")

	secrets := b.secrets("h13", "h14")
	for what, text := range told {
		for name, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s has %s", what, name)
			}
		}
	}
	for _, name := range []string{"h13", "h14"} {
		for mode := range strings.Lines(b.Host(name).Exec("sort", "-u", modes)) {
			if !strings.HasPrefix(mode, "600 root:root ") {
				t.Errorf("on %s the join token was in a file of mode %s", name, mode)
			}
		}
	}
}

// Where what was sampled lies on a host: what runs there, the join token, and the modes of files that
// held it.
const (
	samples   = "/run/sandbox/samples"
	processes = samples + "/processes"
	token     = samples + "/token"
	modes     = samples + "/modes"
	enough    = samples + "/enough"
)

// sampler looks, as often as it can, at what a user of the host could: the arguments of processes,
// and their environment; and, more often still, at the files in k0s's directory.
const sampler = `mkdir -p ` + samples + `; umask 077
while [ ! -e ` + enough + ` ]; do
	for f in /etc/k0s/*oken* /etc/k0s/.[!.]*; do
		[ -f "$f" ] || continue
		stat -c '%a %U:%G %n' "$f" >>` + modes + ` 2>/dev/null
		cp "$f" ` + token + `.now 2>/dev/null && [ -s ` + token + `.now ] && mv ` + token + `.now ` + token + `
	done
	sleep 0.02
done &
while [ ! -e ` + enough + ` ]; do
	for p in /proc/[0-9]*; do
		{ tr '\0' ' ' <$p/cmdline && echo && tr '\0' ' ' <$p/environ && echo; } 2>/dev/null
	done | sort -u >` + processes + `.now
	sort -u ` + processes + `.now ` + processes + ` 2>/dev/null >` + processes + `.all
	mv ` + processes + `.all ` + processes + `
	sleep 0.02
done
wait`

// sample watches the hosts until the function that it returns is called.
func (b *bed) sample(names ...string) (stop func()) {
	b.t.Helper()
	ended := make(chan error, len(names))
	for _, name := range names {
		h := b.Host(name)
		go func() {
			out, err := h.Run("/bin/sh", "-c", sampler)
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			ended <- err
		}()
		sandboxtest.Eventually(b.t, opTime, "the sampler of "+name+" runs", func() bool {
			_, err := h.Run("test", "-s", processes)
			return err == nil
		})
	}
	return func() {
		b.t.Helper()
		for _, name := range names {
			b.Host(name).Exec("touch", enough)
		}
		for range names {
			if err := <-ended; err != nil {
				b.t.Error(err)
			}
		}
	}
}

// secrets are what nobody may get to see, by what they are: those by which the hosts joined, and
// those by which the operation was let in.
func (b *bed) secrets(names ...string) map[string]string {
	b.t.Helper()
	secrets := map[string]string{}
	add := func(what, secret string) {
		if len(secret) < 16 {
			b.t.Fatalf("%s is %q: the test looks for the wrong thing", what, secret)
		}
		secrets[what] = secret
	}
	for _, name := range names {
		packed := strings.TrimSpace(b.Host(name).Exec("cat", token))
		add("the join token of "+name, packed)
		add("the secret of the join token of "+name, tokenSecret(b.t, packed))
	}
	key, err := os.ReadFile(b.Key())
	if err != nil {
		b.t.Fatal(err)
	}
	add("the operator's key", inner(key))
	add("the key of etcd's client", inner([]byte(b.Host("c1").Exec("cat", "/var/lib/k0s/pki/apiserver-etcd-client.key"))))
	admin, err := clientcmd.LoadFromFile(b.Kubeconfig())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, user := range admin.AuthInfos {
		add("the administrator's key", inner(user.ClientKeyData))
		add("the administrator's key, as the kubeconfig has it", base64.StdEncoding.EncodeToString(user.ClientKeyData))
	}
	return secrets
}

// inner is a line out of the middle of a PEM file.
func inner(pem []byte) string {
	lines := strings.Split(strings.TrimSpace(string(pem)), "\n")
	return lines[len(lines)/2]
}

// tokenSecret unpacks a join token down to the half of it that is secret.
func tokenSecret(t *testing.T, packed string) string {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(packed)
	if err != nil {
		t.Fatalf("what was sampled is no join token: %v", err)
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	conf, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`token: "?[a-z0-9]{6}\.([a-z0-9]{16})`).FindSubmatch(conf)
	if m == nil {
		t.Fatal("the join token has no bootstrap token in it")
	}
	return string(m[1])
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
