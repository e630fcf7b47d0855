package hoststest_test

import (
	"context"
	"fmt"

	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/hosts/hoststest"
	"github.com/mkesdk/mkesdk/transport"
)

// A fake connection lets a Machine answer the one command that gathers facts.
func Example() {
	m := hoststest.Ubuntu("h1", "10.0.0.21").WithK0s("v1.36.3+k0s.2")
	m.Mounts = []string{"/var/lib/k0s/kubelet/pods/1/volumes/a"}
	c := conn{func(_ context.Context, cmd transport.Command) error {
		if ok, err := m.Answer(cmd); ok {
			return err
		}
		return fmt.Errorf("%s is not simulated", cmd)
	}}
	facts, err := hosts.Collect(context.Background(), c, hosts.CollectOptions{})
	fmt.Println(facts.K0s.Version, facts.Leftovers.Found(), err)
	// Output: v1.36.3+k0s.2 [/var/lib/k0s/kubelet/pods/1/volumes/a (mounted)] <nil>
}
