package mke

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mkesdk/mkesdk/registry"
)

// TestArtifactsK0s finds the binary under the registry that MkeConfig names, and reads
// it.
func TestArtifactsK0s(t *testing.T) {
	const binary = "#!/bin/sh\necho k0s\n"
	sum := sha256.Sum256([]byte(binary))
	digest := "sha256:" + hex.EncodeToString(sum[:])
	manifest := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",
		"config":{"mediaType":"application/vnd.oci.empty.v1+json","size":2,"digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"},
		"layers":[{"mediaType":"application/octet-stream","size":%d,"digest":"%s","platform":{"os":"linux","architecture":"amd64"},"annotations":{"org.opencontainers.image.title":"k0s"}}]}`, len(binary), digest)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v2/mke/k0s/manifests/v1.36.3-k0s.2":
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			_, _ = io.WriteString(w, manifest)
		case "/v2/mke/k0s/blobs/" + digest:
			_, _ = io.WriteString(w, binary)
		default:
			http.Error(w, `{"errors":[{"code":"MANIFEST_UNKNOWN"}]}`, http.StatusNotFound)
		}
	}))
	defer s.Close()
	at := Registry{URL: s.URL + "/mke"}

	b, err := registryArtifacts{}.K0s(t.Context(), at, "v1.36.3+k0s.2", "amd64")
	if err != nil {
		t.Fatal(err)
	}
	if b.Digest != digest || b.Size != int64(len(binary)) {
		t.Errorf("got %s of %d bytes", b.Digest, b.Size)
	}
	r, err := b.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if data, err := io.ReadAll(r); err != nil || string(data) != binary {
		t.Errorf("read %q, %v", data, err)
	}

	_, err = registryArtifacts{}.K0s(t.Context(), at, "v1.0.0+k0s.0", "amd64")
	if _, ok := errors.AsType[*registry.MissingError](err); !ok {
		t.Errorf("a version that is not there: %v", err)
	}
	for _, r := range []Registry{{URL: "ftp://x/y"}, {URL: s.URL, CAData: "no PEM"}} {
		if _, err := (registryArtifacts{}).K0s(t.Context(), r, "v1.36.3+k0s.2", "amd64"); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "imageRegistry") {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
