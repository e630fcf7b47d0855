package main

import (
	"encoding/base64"
	"fmt"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/cert"
	"github.com/mkesdk/mkesdk/examples/sandbox/internal/host"
)

// A demoStep is something to see: what is told of it, what is arranged behind the SDK's back, and
// the commands.
type demoStep struct {
	title    string
	text     []string
	arrange  func(*demo) error
	commands []typed
}

// typed is a command line and the exit code that it is to end with.
type typed struct {
	line string
	code int
}

// demoSteps are the steps in their order. What a later version can do goes here.
func demoSteps() []demoStep {
	return []demoStep{
		{
			title: "Three workers join at once, one of them through the bastion.",
			text: []string{
				"mkectl is a small program over mke.AddNodes. The first eight stages look and may refuse;",
				"the others act, each on the hosts that it has something to do for.",
			},
			commands: []typed{
				{line: "kubectl get nodes"},
				{line: "cat hosts.yaml"},
				{line: "mkectl node add --hosts-path hosts.yaml"},
				{line: "kubectl get nodes"},
			},
		},
		{
			title:    "The same again changes nothing: every host has joined, every stage that acts is skipped.",
			commands: []typed{{line: "mkectl node add --hosts-path hosts.yaml"}},
		},
		{
			title: "A host of another cluster refuses the whole operation.",
			text: []string{
				"h3 now has a kubeconfig with the CA of some other cluster. Whose it is would be lost if it were",
				"installed over, so the addition says what it saw and touches no host at all.",
			},
			arrange: func(d *demo) error {
				if err := d.hostsFile("h3.yaml", "h3"); err != nil {
					return err
				}
				ca, err := cert.NewCA("another cluster")
				if err != nil {
					return err
				}
				conf := fmt.Sprintf("clusters:\n- cluster:\n    certificate-authority-data: %s\n    server: https://192.0.2.1:6443\n  name: other\n",
					base64.StdEncoding.EncodeToString(ca.PEM()))
				_, err = d.on("h3", "cat >/var/lib/k0s.conf <<'EOF'\n"+conf+"EOF\nmkdir -p /var/lib/k0s && mv /var/lib/k0s.conf /var/lib/k0s/kubelet.conf")
				return err
			},
			commands: []typed{{line: "mkectl node add --hosts-path h3.yaml", code: 1}},
		},
		{
			title: "A worker that runs and whose node never appeared is repaired.",
			text: []string{
				"The kubeconfig of the other cluster is gone from h3. Somebody has installed k0s there by hand,",
				"with a token of this cluster, and its kubelet never registered: scenario 4, restart the service.",
			},
			arrange: func(d *demo) error {
				token, err := d.on("c1", "k0s token create --role worker")
				if err != nil {
					return err
				}
				_, err = d.on("h3", "rm -rf /var/lib/k0s && mkdir -p /etc/sandbox /etc/k0s && touch /etc/sandbox/never-register && "+
					"cp "+host.ProgramDir+"/"+host.Program+" /usr/local/bin/k0s && umask 077 && echo "+token+" >/etc/k0s/k0stoken && "+
					"k0s install worker --token-file=/etc/k0s/k0stoken && k0s start && "+
					"until k0s status >/dev/null 2>&1 && test -s /var/lib/k0s/kubelet.conf; do sleep 0.2; done")
				return err
			},
			commands: []typed{
				{line: "mkectl node add --hosts-path h3.yaml"},
				{line: "kubectl get nodes"},
			},
		},
		{
			title: "Two operations never work on one node: each takes a lock, and gives it back on every way out.",
			commands: []typed{
				{line: "mkectl lock show"},
			},
		},
	}
}
