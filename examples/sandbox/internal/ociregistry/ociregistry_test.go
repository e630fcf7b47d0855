package ociregistry_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/ociregistry"
	"github.com/mkesdk/mkesdk/registry"
)

const version = "v1.36.3+k0s.2"

// serve starts a registry on loopback that holds content as the k0s binary, and returns it
// with a client of it and the artifact's reference.
func serve(t *testing.T, content []byte) (*ociregistry.Registry, *registry.Client, string) {
	t.Helper()
	r, err := ociregistry.New(ociregistry.Config{Hosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "k0s")
	if err := os.WriteFile(file, content, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := r.PushK0s(version, "linux/amd64", file); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	url := r.URL(l.Addr().String())
	client, err := registry.New(registry.Config{URL: url, CAData: r.CA()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	ref, err := registry.K0sReference(url, version)
	if err != nil {
		t.Fatal(err)
	}
	return r, client, ref
}

// The SDK finds the binary in it, and what it reads is the file.
func TestK0sArtifact(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	r, client, ref := serve(t, content)
	if _, err := client.Verify(t.Context(), registry.Artifact{Ref: ref}); err != nil {
		t.Fatal(err)
	}
	b, err := client.Binary(t.Context(), ref, "linux/amd64")
	if err != nil {
		t.Fatal(err)
	}
	if b.Platform != "linux/amd64" || b.Size != int64(len(content)) {
		t.Errorf("got %+v", b)
	}
	from, err := b.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	got, err := io.ReadAll(from)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("read %d bytes, %v, that are not the file", len(got), err)
	}
	if _, err := client.Binary(t.Context(), ref, "linux/arm64"); err == nil || !strings.Contains(err.Error(), "it has linux/amd64") {
		t.Errorf("another platform: %v", err)
	}

	var heads, gets int
	for _, q := range r.Requests() {
		if q.Status != http.StatusOK || !strings.HasPrefix(q.Path, "/v2/mke/k0s/") {
			t.Errorf("asked for %+v", q)
		}
		switch q.Method {
		case "HEAD":
			heads++
		case "GET":
			gets++
		}
	}
	if heads != 1 || gets != 4 {
		t.Errorf("%d HEAD and %d GET, want 1 (of the index) and 4 (twice the index, the manifest, the blob)", heads, gets)
	}
}

func TestDeletedArtifactIsMissing(t *testing.T) {
	r, client, ref := serve(t, []byte("binary"))
	if err := r.DeleteK0s(version); err != nil {
		t.Fatal(err)
	}
	_, err := client.Verify(t.Context(), registry.Artifact{Ref: ref})
	if _, ok := errors.AsType[*registry.MissingError](err); !ok {
		t.Errorf("got %v, want a MissingError", err)
	}
	if err := r.DeleteK0s(version); err == nil {
		t.Error("what is not there was deleted again")
	}
}

func TestFault(t *testing.T) {
	r, client, ref := serve(t, []byte("binary"))
	r.Fault(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	_, err := client.Verify(t.Context(), registry.Artifact{Ref: ref})
	if _, ok := errors.AsType[*registry.AuthError](err); !ok {
		t.Errorf("got %v, want an AuthError", err)
	}
	if log := r.Requests(); log[len(log)-1].Status != http.StatusUnauthorized {
		t.Errorf("noted %+v", log)
	}
	r.Fault(nil)
	if _, err := client.Verify(t.Context(), registry.Artifact{Ref: ref}); err != nil {
		t.Error(err)
	}
}

// What cannot be served is refused when it is pushed.
func TestPushRefuses(t *testing.T) {
	r, err := ociregistry.New(ociregistry.Config{Hosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"no file":     r.PushK0s(version, "linux/amd64", filepath.Join(t.TempDir(), "none")),
		"empty file":  r.PushK0s(version, "linux/amd64", os.DevNull),
		"no platform": r.PushK0s(version, "amd64", os.Args[0]),
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := ociregistry.New(ociregistry.Config{}); err == nil {
		t.Error("a registry that nobody reaches was made")
	}
}

func TestReadOnly(t *testing.T) {
	r, _, _ := serve(t, []byte("binary"))
	for _, method := range []string{"PUT", "POST", "PATCH", "DELETE"} {
		w := &recorder{header: http.Header{}}
		req, err := http.NewRequestWithContext(t.Context(), method, "/v2/mke/k0s/manifests/x", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.ServeHTTP(w, req)
		if w.status != http.StatusMethodNotAllowed {
			t.Errorf("%s: status %d", method, w.status)
		}
	}
}

type recorder struct {
	header http.Header
	status int
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return len(p), nil }
