package mke

import (
	"slices"
	"testing"
	"testing/synctest"
)

// TestLockSleeperAcross lets the holder of a stale lock of the other kind wake up and
// renew it right after it was watched for long enough: it is not deleted.
func TestLockSleeperAcross(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &leaseClient{store: newLeaseStore()}
		die(t, c, ofNodes("w1"))
		c.fault = func(verb, name string) fault {
			if verb == "create" && name == clusterLease {
				c.store.mu.Lock()
				c.store.put(c.store.leases["mke-node-w1"])
				c.store.mu.Unlock()
			}
			return works
		}
		req := adopting(ofNodes("w1"))
		req.Nodes = nil
		if locked := wantLocked(t, c, req); locked.Lease != "mke-node-w1" {
			t.Errorf("refused by %v", locked)
		}
		if left := c.store.names(); !slices.Equal(left, []string{"mke-node-w1"}) {
			t.Errorf("there are %v", left)
		}
	})
}
