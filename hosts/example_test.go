package hosts_test

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/hosts/hoststest"
	"github.com/mkesdk/mkesdk/transport"
)

// simulated is a connection to a simulated host. A real one comes of
// transport.Dial.
type simulated struct{ hoststest.Machine }

func (s simulated) Run(_ context.Context, cmd transport.Command) error {
	_, err := s.Answer(cmd)
	return err
}
func (simulated) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.ErrUnsupported
}
func (simulated) Close() error   { return nil }
func (simulated) String() string { return "root@10.0.0.21:22" }

// What is done with a host is decided by pure functions over what was observed.
func Example() {
	ctx := context.Background()
	specs, err := hosts.Load("hosts.yaml", []byte(`
hosts:
  - role: worker
    installFlags: ["--labels=zone=a"]
    ssh: {address: 10.0.0.21}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	host := simulated{hoststest.Ubuntu("h1", "10.0.0.21")}
	host.CPUs = 1

	facts, err := hosts.Collect(ctx, host, hosts.CollectOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	state := hosts.Observe(facts, hosts.ClusterView{CAFingerprint: "of the running cluster"})
	scenario := hosts.Match(hosts.Add, specs[0].Role, state)
	fmt.Printf("%s: scenario %s, %s: %s\n", facts.NodeName, scenario.Row, scenario.Name, scenario.Action)
	for _, f := range hosts.Check(facts.NodeName, facts, specs[0].Role, hosts.Bounds{}) {
		fmt.Println(f.Severity, f)
	}
	// Output:
	// h1: scenario 1, clean host: install
	// error h1: cpu: want 2 cores, got 1 core
}

// All that is wrong with a file is said at once, with its place.
func ExampleLoad() {
	_, err := hosts.Load("hosts.yaml", []byte(`hosts:
  - role: controller
    ssh:
      adress: 10.0.0.21
      port: "22"
`))
	fmt.Println(err)
	// Output:
	// hosts.yaml:2:11: hosts[0].role: unknown role "controller": want worker or controller+worker; did you mean "controller+worker"?
	// hosts.yaml:4:7: hosts[0].ssh.adress: unknown field; did you mean "address"?
	// hosts.yaml:5:13: hosts[0].ssh.port: want a number from 1 to 65535, got text: write it without quotes
}
