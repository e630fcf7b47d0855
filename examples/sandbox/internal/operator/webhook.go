package operator

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/cert"
)

// Names of the validating webhook.
const (
	webhookName = "mkeconfig.mke.mirantis.com"
	webhookPath = "/validate-mkeconfig"
)

var webhooks = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}

// maxReview is the longest admission review that is read.
const maxReview = 8 << 20

// serveWebhook serves the validating webhook on a listener and registers it. The channel gives
// the error that ended the serving, or nil when the context did.
func serveWebhook(ctx context.Context, c client, l net.Listener, log *slog.Logger) (<-chan error, error) {
	host, _, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return nil, fmt.Errorf("mke operator: webhook: %w", err)
	}
	ca, err := cert.NewCA("mke-operator webhook CA")
	if err != nil {
		return nil, fmt.Errorf("mke operator: webhook: %w", err)
	}
	leaf, err := ca.Server(host)
	if err != nil {
		return nil, fmt.Errorf("mke operator: webhook: %w", err)
	}
	s := &http.Server{
		Handler:           c.webhook(),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{leaf}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	context.AfterFunc(ctx, func() { s.Close() })
	stopped := make(chan error, 1)
	go func() {
		err := s.ServeTLS(l, "", "")
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		stopped <- err
	}()
	if err := c.registerWebhook(ctx, "https://"+l.Addr().String()+webhookPath, ca.PEM()); err != nil {
		s.Close()
		return nil, err
	}
	return stopped, nil
}

// registerWebhook makes the API servers ask url before a MkeConfig is written.
func (c client) registerWebhook(ctx context.Context, url string, ca []byte) error {
	hook := object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", webhookName, nil)
	hook.Object["webhooks"] = []any{map[string]any{
		"name":                    webhookName,
		"clientConfig":            map[string]any{"url": url, "caBundle": base64.StdEncoding.EncodeToString(ca)},
		"admissionReviewVersions": []any{"v1"},
		"sideEffects":             "None",
		"failurePolicy":           "Fail",
		"timeoutSeconds":          int64(5),
		"rules": []any{map[string]any{
			"apiGroups": []any{"mke.mirantis.com"}, "apiVersions": []any{"v1alpha1"}, "resources": []any{"mkeconfigs"},
			"operations": []any{"CREATE", "UPDATE"},
		}},
	}}
	err := c.patiently(ctx, func(ctx context.Context) error {
		// What an earlier operator registered names its CA, which is gone.
		_, err := c.Resource(webhooks).Apply(ctx, webhookName, hook, metav1.ApplyOptions{FieldManager: UserAgent, Force: true})
		return err
	})
	if err != nil {
		return fmt.Errorf("mke operator: register the webhook: %w", err)
	}
	return nil
}

// webhook answers admission reviews of MkeConfigs.
func (c client) webhook() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+webhookPath, func(w http.ResponseWriter, req *http.Request) {
		var review admissionv1.AdmissionReview
		data, err := io.ReadAll(io.LimitReader(req.Body, maxReview))
		if err == nil {
			err = json.Unmarshal(data, &review)
		}
		if err != nil || review.Request == nil {
			http.Error(w, "this is no admission review", http.StatusBadRequest)
			return
		}
		answer := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		if err := c.admit(req.Context(), review.Request.Object.Raw); err != nil {
			answer.Allowed = false
			answer.Result = &metav1.Status{Message: err.Error(), Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden}
		}
		review.Request, review.Response = nil, answer
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(review) // the API server that is gone asks again
	})
	return mux
}

// admit lets a MkeConfig be written if its release is there and Ready.
func (c client) admit(ctx context.Context, raw []byte) error {
	config := &unstructured.Unstructured{}
	if err := config.UnmarshalJSON(raw); err != nil {
		return fmt.Errorf("MkeConfig: %w", err)
	}
	version, _, _ := unstructured.NestedString(config.Object, "spec", "version")
	release, err := c.Resource(releases).Namespace(Namespace).Get(ctx, version, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("spec.version: there is no MkeRelease %q", version)
	case err != nil:
		return fmt.Errorf("MkeRelease %q: %w", version, err)
	case !isTrue(release, "Ready"):
		return fmt.Errorf("MkeRelease %q is not Ready", version)
	}
	return nil
}
