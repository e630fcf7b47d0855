package operator

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// testWebhook sees that a MkeConfig is written only while its release is Ready.
func testWebhook(t *testing.T, c client) {
	ready := func(status string) {
		t.Helper()
		change := map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
			"type": "Ready", "status": status, "reason": "Test", "message": "", "lastTransitionTime": "2026-11-30T12:00:00Z"}}}}
		if err := patch(t, c, releases, "4.2.1", change, "status"); err != nil {
			t.Fatal(err)
		}
	}
	label := func(v string) error {
		return patch(t, c, configs, ConfigName, map[string]any{"metadata": map[string]any{"labels": map[string]any{"test": v}}})
	}
	ready("False")
	eventually(t, 10*time.Second, "a write is refused while the release is not Ready", func(context.Context) error {
		err := label(fmt.Sprint(time.Now().UnixNano()))
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `MkeRelease "4.2.1" is not Ready`) {
			return fmt.Errorf("got %v", err)
		}
		return nil
	})
	if err := patch(t, c, configs, ConfigName, map[string]any{"status": map[string]any{"observedGeneration": 1}}, "status"); err != nil {
		t.Errorf("the status is not for the webhook: %v", err)
	}
	ready("True")
	if err := label("let-through"); err != nil {
		t.Error(err)
	}
	err := patch(t, c, configs, ConfigName, map[string]any{"spec": map[string]any{"version": "9.9.9"}})
	if err == nil || !strings.Contains(err.Error(), `there is no MkeRelease "9.9.9"`) {
		t.Errorf("a version without a release: %v", err)
	}
}

// testIdle looks at a settled cluster as the operator does: nothing is to be written.
func testIdle(t *testing.T, cfg *rest.Config) {
	var writes atomic.Int32
	counting := rest.CopyConfig(cfg)
	counting.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet {
				t.Logf("%s %s", r.Method, r.URL.Path)
				writes.Add(1)
			}
			return rt.RoundTrip(r)
		})
	})
	c, err := connect(counting)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "there is nothing to write", func(context.Context) error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		op, err := newReconciler(ctx, c, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		defer op.factory.Shutdown()
		defer cancel()
		before := writes.Load()
		if err := op.reconcile(ctx); err != nil {
			return err
		}
		if n := writes.Load() - before; n > 0 {
			return fmt.Errorf("%d writes", n)
		}
		return nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
