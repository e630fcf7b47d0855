package k0s

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/control"
)

func (a *app) etcdCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "etcd", Args: cobra.NoArgs, RunE: showHelp}
	a.debugFlags(cmd.PersistentFlags())
	a.pathFlags(cmd.Flags())
	list := &cobra.Command{Use: "member-list", Args: cobra.NoArgs, RunE: a.memberList}
	a.pathFlags(list.Flags())
	cmd.AddCommand(list, &cobra.Command{Use: "leave", DisableFlagParsing: true, RunE: notPlayed})
	return cmd
}

// memberList prints name and first peer URL of each member, ids and learners not. It waits for
// etcd as long as the caller does: so does the real one.
func (a *app) memberList(cmd *cobra.Command, _ []string) error {
	fail := func(err error) error { return fmt.Errorf("can't list etcd cluster members: %w", err) }
	v, err := a.vars()
	if err != nil {
		return err
	}
	c, err := control.EtcdClient(v)
	if err != nil {
		return fail(err)
	}
	defer c.Close()
	resp, err := c.MemberList(cmd.Context())
	if err != nil {
		return fail(fmt.Errorf("etcd member list failed: %w", err))
	}
	members := map[string]string{}
	for _, m := range resp.Members {
		if len(m.PeerURLs) > 0 {
			members[m.Name] = m.PeerURLs[0]
		}
	}
	return json.NewEncoder(a.out).Encode(map[string]any{"members": members})
}
