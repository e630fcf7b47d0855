package k0s

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
)

// parts are the versions of what the real k0s of this version brings along.
var parts = struct {
	K0s          string `json:"k0s"`
	Runc         string `json:"runc"`
	Containerd   string `json:"containerd"`
	Kubernetes   string `json:"kubernetes"`
	Kine         string `json:"kine"`
	Etcd         string `json:"etcd"`
	Konnectivity string `json:"konnectivity"`
}{Version, "1.4.3", "2.3.3", "1.36.3", "0.16.3", "3.6.14", "0.36.0"}

func (a *app) versionCommand() *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{Use: "version", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
		switch {
		case all:
			fmt.Fprintf(a.out, "k0s : %s\nrunc : %s\ncontainerd : %s\nkubernetes : %s\nkine : %s\netcd : %s\nkonnectivity : %s\n",
				parts.K0s, parts.Runc, parts.Containerd, parts.Kubernetes, parts.Kine, parts.Etcd, parts.Konnectivity)
		case asJSON:
			out, err := json.MarshalIndent(parts, "", "   ")
			if err != nil {
				return err
			}
			fmt.Fprintln(a.out, string(out))
		default:
			fmt.Fprintln(a.out, Version)
		}
		return nil
	}}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "")
	cmd.Flags().BoolVarP(&asJSON, "json", "j", false, "")
	return cmd
}
