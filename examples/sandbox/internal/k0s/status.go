package k0s

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/control"
)

// status is what a running k0s says of itself.
type status struct {
	Version                     string
	Pid                         int
	PPid                        int
	Role                        string
	SysInit                     string
	StubFile                    string
	Output                      string
	Workloads                   bool
	SingleNode                  bool
	Args                        []string
	WorkerToAPIConnectionStatus probe
	ClusterConfig               json.RawMessage
	K0sVars                     control.Vars
}

// probe is how a worker's last look at the API server went.
type probe struct {
	Message string
	Success bool
}

func (a *app) statusCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{Use: "status", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		st, err := a.readStatus(cmd.Context())
		if err != nil {
			return err
		}
		return a.printStatus(st, output)
	}}
	cmd.Flags().StringVarP(&output, "out", "o", "", "")
	components := &cobra.Command{Use: "components", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		fmt.Fprintln(a.err, "!!! per component status is not yet finally ready, information here might be not full yet")
		var state map[string]any
		v, err := a.vars()
		if err != nil {
			return err
		}
		if err := ask(cmd.Context(), v.StatusSocketPath, "components?maxCount=1", &state); err != nil {
			return err
		}
		text, err := yaml.Marshal(state)
		if err != nil {
			return err
		}
		fmt.Fprintln(a.out, string(text))
		return nil
	}}
	components.Flags().Int("max-count", 1, "")
	components.Flags().StringP("out", "o", "", "")
	cmd.AddCommand(components)
	a.debugFlags(cmd.PersistentFlags())
	cmd.PersistentFlags().StringVar(&a.p.statusSocket, "status-socket", "", "")
	return cmd
}

func (a *app) readStatus(ctx context.Context) (status, error) {
	var st status
	v, err := a.vars()
	if err != nil {
		return st, err
	}
	return st, ask(ctx, v.StatusSocketPath, "status", &st)
}

func (a *app) printStatus(st status, output string) error {
	switch output {
	case "json":
		text, err := json.MarshalIndent(st, "", "   ")
		if err != nil {
			return err
		}
		fmt.Fprintln(a.out, string(text))
	case "yaml":
		text, err := yaml.Marshal(st)
		if err != nil {
			return err
		}
		fmt.Fprintln(a.out, string(text))
	default:
		fmt.Fprintln(a.out, "Version:", st.Version)
		fmt.Fprintln(a.out, "Process ID:", st.Pid)
		fmt.Fprintln(a.out, "Role:", st.Role)
		fmt.Fprintln(a.out, "Workloads:", st.Workloads)
		fmt.Fprintln(a.out, "SingleNode:", st.SingleNode)
		if st.Workloads {
			fmt.Fprintln(a.out, "Kube-api probing successful:", st.WorkerToAPIConnectionStatus.Success)
			fmt.Fprintln(a.out, "Kube-api probing last error: ", st.WorkerToAPIConnectionStatus.Message)
		}
	}
	return nil
}

// ask gets a JSON value from a running k0s. There is no time-out, as in the real client.
func ask(ctx context.Context, socket, path string, into any) error {
	fail := func(err error) error { return fmt.Errorf("status: can't get %q via %q: %w", path, socket, err) }
	c := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/"+path, nil)
	if err != nil {
		return fail(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return fail(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fail(fmt.Errorf("status code %d", resp.StatusCode))
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fail(fmt.Errorf("can't decode JSON: %w", err))
	}
	return nil
}
