package mke

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mkesdk/mkesdk/hosts"
)

// TestSequence compares the sequence with the documentation's list, word for word.
func TestSequence(t *testing.T) {
	want := `reachability host-state facts preflight registry cluster-state etcd-state operation-lock
		registry-ca k0s-binary selinux-labels worker-bootstrap service-restart cloud-provider-reinstall
		uncordon verification node-labels mkeconfig-patch`
	var got []string
	for _, s := range Sequence(Add, hosts.Worker) {
		got = append(got, string(s))
	}
	if g, w := strings.Join(got, " "), strings.Join(strings.Fields(want), " "); g != w {
		t.Errorf("got  %s\nwant %s", g, w)
	}
	if s := Sequence(Add, hosts.ControllerWorker); s != nil {
		t.Errorf("a sequence that there is not: %v", s)
	}
}

// idle returns a run whose steps do nothing, with the events that it emits.
func idle(targets int) (*run, *[]Event) {
	var events []Event
	r := &run{op: Add, opts: Options{OnEvent: func(e Event) { events = append(events, e) }}.withDefaults()}
	for i := range targets {
		t := &target{}
		t.spec.SSH.Address = fmt.Sprintf("10.0.0.%d", i+1)
		r.targets = append(r.targets, t)
	}
	for _, s := range sequence(Add, hosts.Worker) {
		s.on, s.kind = all, check
		s.do = each(func(context.Context, *run, *target) error { return nil })
		r.steps = append(r.steps, s)
	}
	return r, &events
}

// TestFailAnywhere makes each stage fail in turn. Whichever it is, what was taken is
// given back once, no later stage starts, and the error names the stage and the host.
func TestFailAnywhere(t *testing.T) {
	boom := errors.New("boom")
	for i, s := range sequence(Add, hosts.Worker) {
		t.Run(string(s.stage), func(t *testing.T) {
			r, events := idle(3)
			released := 0
			r.cleanup = append(r.cleanup, func(context.Context) error { released++; return nil })
			r.steps[i].do = each(func(_ context.Context, _ *run, t *target) error {
				if t == r.targets[1] {
					return boom
				}
				return nil
			})
			err := r.do(t.Context())
			se, ok := errors.AsType[*StageError](err)
			if !ok || se.Stage != s.stage || se.Host.Address != "10.0.0.2" || !errors.Is(err, boom) {
				t.Fatalf("got %v", err)
			}
			if last := (*events)[len(*events)-1]; last.Kind != Failed || last.Stage != s.stage || last.Error == "" {
				t.Errorf("last event is %+v", last)
			}
			if released != 1 {
				t.Errorf("released %d times", released)
			}
			if !Retryable(err) {
				t.Error("a plain failure is not retryable")
			}
		})
	}
}

// TestPanicAnywhere makes a host's work panic in each stage: the lock is given back on that way out
// too.
func TestPanicAnywhere(t *testing.T) {
	for i, s := range sequence(Add, hosts.Worker) {
		t.Run(string(s.stage), func(t *testing.T) {
			r, _ := idle(2)
			released := 0
			r.cleanup = append(r.cleanup, func(context.Context) error { released++; return nil })
			r.steps[i].do = each(func(context.Context, *run, *target) error { panic("oops") })
			defer func() {
				if p := recover(); p != "oops" || released != 1 {
					t.Errorf("recovered %v, released %d times", p, released)
				}
			}()
			t.Errorf("it returned %v", r.do(t.Context()))
		})
	}
}

// TestCancelAnywhere ends the context, or asks for a stop, in the middle of each
// stage.
func TestCancelAnywhere(t *testing.T) {
	lost := fmt.Errorf("%w: somebody deleted it", ErrLockLost)
	for i, s := range sequence(Add, hosts.Worker)[:17] {
		for name, want := range map[string]error{"cancel": context.Canceled, "lost lock": ErrLockLost, "stop": ErrStopped} {
			t.Run(string(s.stage)+"/"+name, func(t *testing.T) {
				r, events := idle(3)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				stop := make(chan struct{})
				r.opts.Stop = stop
				r.opts.Concurrency = 1
				begun := 0
				r.steps[i].do = each(func(ctx context.Context, r *run, _ *target) error {
					begun++
					switch name {
					case "cancel":
						cancel()
					case "lost lock":
						r.abort(lost)
					case "stop":
						close(stop)
						return nil // what was begun is finished
					}
					<-ctx.Done()
					return ctx.Err()
				})
				err := r.do(ctx)
				if !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
				if begun != 1 {
					t.Errorf("%d hosts were begun", begun)
				}
				for _, e := range *events {
					if e.N > i+1 && e.Kind == Started {
						t.Errorf("stage %s started afterwards", e.Stage)
					}
				}
			})
		}
	}
}

// TestConcurrency counts how many hosts a stage works on at once.
func TestConcurrency(t *testing.T) {
	for _, tt := range []struct{ option, want int }{{0, 30}, {1, 1}, {7, 7}, {-1, 40}} {
		synctest.Test(t, func(t *testing.T) {
			r, _ := idle(40)
			r.opts.Concurrency = Options{Concurrency: tt.option}.withDefaults().Concurrency
			var now, most atomic.Int64
			r.steps = r.steps[:1]
			r.steps[0].do = each(func(context.Context, *run, *target) error {
				n := now.Add(1)
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				time.Sleep(time.Second) // in a bubble: until all that can run do
				now.Add(-1)
				return nil
			})
			if err := r.do(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := int(most.Load()); got != tt.want {
				t.Errorf("Concurrency %d: %d hosts at once, want %d", tt.option, got, tt.want)
			}
		})
	}
}

// TestGuard refuses to begin anything that changes something without a lock.
func TestGuard(t *testing.T) {
	for i, s := range sequence(Add, hosts.Worker) {
		r, events := idle(1)
		r.steps[i].kind = s.kind
		err := r.do(t.Context())
		if want := s.kind == change && s.stage != OperationLock; want != errors.Is(err, ErrLockLost) {
			t.Errorf("%s, kind %d: %v", s.stage, s.kind, err)
		}
		started := slices.ContainsFunc(*events, func(e Event) bool { return e.Kind == Progress && e.Stage == s.stage })
		if started == (err != nil) {
			t.Errorf("%s: it acted: %t", s.stage, started)
		}
	}
}

// TestPoll gives up when the time is up and says what was seen last; a stop ends
// it at once.
func TestPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, events := idle(1)
		start := time.Now()
		err := r.poll(t.Context(), r.targets[0], time.Minute, "the moon", func(context.Context) (bool, string, error) {
			return false, "a cloud", nil
		})
		if !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), "last seen: a cloud") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took != time.Minute {
			t.Errorf("it took %s", took)
		}
		if len(*events) != 1 || (*events)[0].Deadline == nil || !(*events)[0].Deadline.Equal(start.Add(time.Minute)) {
			t.Errorf("events: %+v", *events)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r, _ := idle(1)
		stop := make(chan struct{})
		r.opts.Stop = stop
		time.AfterFunc(90*time.Second, func() { close(stop) })
		start := time.Now()
		err := r.poll(t.Context(), r.targets[0], time.Hour, "the moon", func(context.Context) (bool, string, error) {
			return false, "a cloud", nil
		})
		if !errors.Is(err, ErrStopped) || time.Since(start) != 90*time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}
