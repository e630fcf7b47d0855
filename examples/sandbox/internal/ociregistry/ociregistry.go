// Package ociregistry is the image registry of a sandbox: read-only, over TLS, anonymous, with
// the k0s artifact in it.
package ociregistry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	ggcr "github.com/google/go-containerregistry/pkg/registry"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/cert"
)

// maxRequests is how many requests the log keeps; the oldest go first.
const maxRequests = 10000

// Config is a registry to make.
type Config struct {
	// Hosts are the names and addresses it is reached by, without a port: its certificate
	// is made for them. At least one.
	Hosts []string
	// Path is where artifacts lie below the registry; "mke" if empty.
	Path string
	// Log takes what the server itself has to say; nothing is logged if it is nil.
	Log *slog.Logger
}

// A Registry serves artifacts. It may be used by several goroutines.
type Registry struct {
	path  string
	ca    *cert.CA
	leaf  tls.Certificate
	log   *slog.Logger
	store http.Handler
	blobs *blobs

	mu    sync.Mutex // of what follows
	asked []Request
	fault func(http.ResponseWriter, *http.Request) bool
}

// A Request is one that the registry was asked.
type Request struct {
	At     time.Time
	From   string // address of the client
	Method string
	Path   string
	Status int
}

// New makes a registry with a CA of its own and nothing in it.
func New(c Config) (*Registry, error) {
	if len(c.Hosts) == 0 {
		return nil, errors.New("oci registry: no name or address that it is reached by")
	}
	ca, err := cert.NewCA("sandbox registry CA")
	if err != nil {
		return nil, fmt.Errorf("oci registry: %w", err)
	}
	leaf, err := ca.Server(c.Hosts...)
	if err != nil {
		return nil, fmt.Errorf("oci registry: %w", err)
	}
	r := &Registry{path: c.Path, ca: ca, leaf: leaf, log: c.Log, blobs: newBlobs()}
	if r.path == "" {
		r.path = "mke"
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.store = ggcr.New(ggcr.WithBlobHandler(r.blobs), ggcr.Logger(log.New(io.Discard, "", 0)))
	return r, nil
}

// CA is the certificate that clients have to trust, as PEM: MkeConfig's caData.
func (r *Registry) CA() []byte { return r.ca.PEM() }

// URL is what MkeConfig names a registry by that listens on host:port.
func (r *Registry) URL(hostport string) string { return hostport + "/" + r.path }

// Serve serves on a listener until the context ends, and closes it.
func (r *Registry) Serve(ctx context.Context, l net.Listener) error {
	s := &http.Server{
		Handler:           r,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{r.leaf}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 30 * time.Second,
		ErrorLog:          slog.NewLogLogger(r.log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	err := s.ServeTLS(l, "", "")
	if ctx.Err() != nil && errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("oci registry on %s: %w", l.Addr(), err)
}

// ServeHTTP answers reads and notes every request.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	noted := &notingWriter{ResponseWriter: w, status: http.StatusOK}
	defer func() {
		r.note(Request{At: time.Now(), From: req.RemoteAddr, Method: req.Method, Path: req.URL.Path, Status: noted.status})
	}()
	r.mu.Lock()
	fault := r.fault
	r.mu.Unlock()
	switch {
	case fault != nil && fault(noted, req):
	case req.Method != http.MethodGet && req.Method != http.MethodHead:
		http.Error(noted, `{"errors":[{"code":"UNSUPPORTED","message":"this registry is read-only"}]}`, http.StatusMethodNotAllowed)
	default:
		r.store.ServeHTTP(noted, req)
	}
}

// Fault answers requests in the registry's place where f returns true, until it is
// replaced; nil ends it.
func (r *Registry) Fault(f func(http.ResponseWriter, *http.Request) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = f
}

// Requests is what the registry was asked, oldest first.
func (r *Registry) Requests() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Request(nil), r.asked...)
}

func (r *Registry) note(q Request) {
	r.log.Debug("registry", "from", q.From, "method", q.Method, "path", q.Path, "status", q.Status)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.asked) >= maxRequests {
		r.asked = r.asked[1:]
	}
	r.asked = append(r.asked, q)
}

// A notingWriter keeps the status of an answer.
type notingWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader notes the status and passes it on.
func (w *notingWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController through.
func (w *notingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
