package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mkesdk/mkesdk/etcdverify"
	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/mke"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestMain makes two programs of the test binary: mkectl itself, and mkectl-fake,
// which is mkectl over an SDK that does what MKECTL_FAKE says.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"mkectl": main, "mkectl-fake": fakeMain})
}

// TestScripts types what a person types.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// exits CODE COMMAND… runs a command that has to end with that code.
			"exits": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) < 2 {
					ts.Fatalf("usage: exits code command [args]")
				}
				got := 0
				if err := ts.Exec(args[1], args[2:]...); err != nil {
					exit, ok := errors.AsType[*exec.ExitError](err)
					if !ok {
						ts.Fatalf("%v", err)
					}
					got = exit.ExitCode()
				}
				if fmt.Sprint(got) != args[0] {
					ts.Fatalf("exit code %d, want %s", got, args[0])
				}
			},
		},
	})
}

// fakeMain is main over a fake.
func fakeMain() {
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, sdk: fake(os.Getenv("MKECTL_FAKE"))}
	os.Exit(a.run(context.Background(), os.Args[1:]))
}

// A fake is an SDK that ends as its name says.
type fake string

func (f fake) addNodes(ctx context.Context, _ mke.ConnectOptions, o mke.Options) (mke.Result, error) {
	h := mke.HostRef{Address: o.Hosts[0].SSH.Address, Node: "h1"}
	result := mke.Result{Helper: mke.HostRef{Address: "10.0.0.1", Node: "c1"}}
	at := time.Date(2026, 11, 30, 20, 0, 0, 0, time.UTC)
	emit := func(stage mke.Stage, kind mke.EventKind) {
		o.OnEvent(mke.Event{Time: at, Kind: kind, Stage: stage, N: 1, Of: 18, Hosts: []mke.HostRef{h}})
	}
	emit(mke.Reachability, mke.Started)
	switch f {
	case "locked":
		return result, blame(mke.OperationLock, mke.HostRef{}, &mke.LockedError{Lease: "mke-node-h1", Lock: mke.LockInfo{
			Operation: "node-add", State: "adding", Client: "ann@desk pid 7", Started: at, Expires: at.Add(time.Minute),
		}})
	case "runbook":
		return result, blame(mke.EtcdState, mke.HostRef{}, &etcdverify.Error{Host: "c1", Topic: etcdverify.TopicNoQuorum, Detail: "no leader"})
	case "refused":
		return result, errors.Join(
			blame(mke.HostState, h, &mke.HostError{Scenario: hosts.Scenario{Row: "11", Name: "belongs to another cluster"}, Cause: mke.ErrOtherCluster}),
			blame(mke.HostState, mke.HostRef{Address: "10.0.0.22"}, errors.New("connection refused")))
	case "stop": // as an operation that can be stopped does
		<-o.Stop
		return result, blame(mke.Reachability, mke.HostRef{}, mke.ErrStopped)
	case "stubborn": // as one that is in the middle of something
		emit(mke.OperationLock, mke.Finished)
		emit(mke.WorkerBootstrap, mke.Started)
		<-ctx.Done()
		result.Left = []string{"the operation lock of h1: mkectl lock show"}
		return result, blame(mke.WorkerBootstrap, h, context.Cause(ctx))
	}
	emit(mke.Reachability, mke.Finished)
	result.Hosts = []mke.HostResult{{Host: h, Scenario: "1", Name: "clean host", Did: []string{"installed", "registered in MkeConfig"}}}
	return result, nil
}

func (f fake) locks(context.Context, mke.ConnectOptions) ([]mke.LockInfo, error) {
	if f == "none" {
		return nil, nil
	}
	at := time.Date(2026, 11, 30, 20, 0, 0, 0, time.UTC)
	return []mke.LockInfo{{
		Lease: "mke-node-h1", Operation: "node-add", State: "adding", Scope: "worker", Hosts: []string{"10.0.0.21"},
		Client: "ann@desk pid 7", Started: at, Renewed: at, Expires: at.Add(time.Minute), Stale: f == "stale",
	}}, nil
}

func blame(stage mke.Stage, h mke.HostRef, err error) error {
	return &mke.StageError{Operation: mke.Add, Stage: stage, Host: h, Err: err}
}
