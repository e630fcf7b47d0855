package transport_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"

	"github.com/mkesdk/mkesdk/transport"
	"github.com/mkesdk/mkesdk/transport/transporttest"
)

// Several hosts behind one bastion share the connection to it.
func ExampleDialer() {
	keys, err := transport.KnownHosts("~/.ssh/known_hosts")
	if err != nil {
		log.Fatal(err)
	}
	auth := transport.Auth{KeyFile: "~/.ssh/id_ed25519"}
	bastion := &transport.Config{Address: "bastion.example.com", User: "jump", Auth: auth, HostKeys: keys}

	ctx := context.Background()
	d := &transport.Dialer{Trace: func(c transport.Call) { log.Println(c.Host, c.Command, c.Duration) }}
	defer d.Close() // the end of the program
	for _, address := range []string{"10.0.0.1", "10.0.0.2"} {
		c, err := d.Dial(ctx, transport.Config{Address: address, User: "ops", Auth: auth, HostKeys: keys, Bastion: bastion})
		if err != nil {
			log.Fatal(err)
		}
		name, err := transport.Output(ctx, c, transport.Command{Args: []string{"hostname"}, Effect: transport.EffectNone})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(name)
	}
}

func Example() {
	ctx := context.Background()
	var t testing.TB // that of the test
	var c transport.Conn = transporttest.New(t, "ops@10.0.0.1:22")

	err := transport.WriteFile(ctx, c, "/etc/k0s/k0s.yaml", strings.NewReader("spec: {}\n"), transport.FileOptions{Mode: 0o640})
	if exit, ok := errors.AsType[*transport.ExitError](err); ok {
		fmt.Println("it ran, and failed:", exit.Stderr)
	} else if err != nil {
		fmt.Println("it may have run:", err)
	}
	data, err := transport.ReadFile(ctx, c, "/etc/k0s/k0s.yaml")
	fmt.Printf("%s%v\n", data, err)
	// Output:
	// spec: {}
	// <nil>
}

func ExampleCommand_String() {
	fmt.Println(transport.Command{Args: []string{"login", "--token", "s3cret"}, Sudo: true, Secrets: []string{"s3cret"}})
	// Output: sudo login --token ******
}
