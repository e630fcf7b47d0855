package ociregistry

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	ggcr "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/mkesdk/mkesdk/registry"
)

// Media types of the k0s artifact.
const (
	artifactType = "application/vnd.mke.k0s"
	layerType    = "application/octet-stream"
	emptyType    = "application/vnd.oci.empty.v1+json"
)

// PushK0s puts a file in as the k0s binary of a version for a platform (linux/amd64), as an
// index with that platform alone. The file is read once for its digest and is served from
// where it lies: it must not change while the registry lives.
func (r *Registry) PushK0s(version, platform, file string) error {
	system, arch, ok := strings.Cut(platform, "/")
	if !ok {
		return fmt.Errorf("oci registry: platform %q: want os/architecture", platform)
	}
	layer, err := r.blobs.addFile(file)
	if err != nil {
		return fmt.Errorf("oci registry: k0s binary: %w", err)
	}
	layer.MediaType = layerType
	layer.Annotations = map[string]string{registry.TitleAnnotation: "k0s"}
	config := r.blobs.addBytes([]byte("{}"))
	config.MediaType = emptyType
	image, err := r.putManifest("", types.OCIManifestSchema1, v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: artifactType,
		Config: config, Layers: []v1.Descriptor{layer},
	})
	if err != nil {
		return err
	}
	image.ArtifactType = artifactType
	image.Platform = &v1.Platform{OS: system, Architecture: arch}
	_, err = r.putManifest(tag(version), types.OCIImageIndex, v1.IndexManifest{
		SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{image},
	})
	return err
}

// DeleteK0s takes the artifact of a version out again: the registry then does not have it.
func (r *Registry) DeleteK0s(version string) error {
	return r.manifest(http.MethodDelete, tag(version), "", nil, http.StatusAccepted)
}

// tag is a version as a tag can hold it.
func tag(version string) string { return strings.ReplaceAll(version, "+", "-") }

// putManifest stores a manifest under a tag, or under its digest if the tag is empty.
func (r *Registry) putManifest(tag string, mt types.MediaType, m any) (v1.Descriptor, error) {
	data, err := json.Marshal(m)
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("oci registry: manifest: %w", err)
	}
	d := v1.Descriptor{MediaType: mt, Digest: digestOf(data), Size: int64(len(data))}
	if tag == "" {
		tag = d.Digest.String()
	}
	return d, r.manifest(http.MethodPut, tag, string(mt), data, http.StatusCreated)
}

// manifest changes a manifest past the network, which serves reads alone.
func (r *Registry) manifest(method, tag, contentType string, data []byte, want int) error {
	path := "/v2/" + r.path + "/k0s/manifests/" + tag
	w := &answer{header: http.Header{}}
	r.store.ServeHTTP(w, &http.Request{
		Method: method, URL: &url.URL{Path: path}, Header: http.Header{"Content-Type": {contentType}},
		Body: io.NopCloser(bytes.NewReader(data)),
	})
	if w.status != want {
		return fmt.Errorf("oci registry: %s %s: status %d: %s", method, path, w.status, strings.TrimSpace(w.body.String()))
	}
	return nil
}

// An answer is a response that stays in the process.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

// blobs are files on disk and short texts, by digest.
type blobs struct {
	mu    sync.Mutex
	files map[v1.Hash]file
	texts map[v1.Hash][]byte
}

type file struct {
	name string
	size int64
}

func newBlobs() *blobs { return &blobs{files: map[v1.Hash]file{}, texts: map[v1.Hash][]byte{}} }

// addFile reads a file for its digest and keeps its name.
func (b *blobs) addFile(name string) (v1.Descriptor, error) {
	f, err := os.Open(name)
	if err != nil {
		return v1.Descriptor{}, err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("reading %s: %w", name, err)
	}
	if n == 0 {
		return v1.Descriptor{}, fmt.Errorf("%s is empty", name)
	}
	h := v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum.Sum(nil))}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.files[h] = file{name: name, size: n}
	return v1.Descriptor{Digest: h, Size: n}, nil
}

func (b *blobs) addBytes(data []byte) v1.Descriptor {
	h := digestOf(data)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.texts[h] = data
	return v1.Descriptor{Digest: h, Size: int64(len(data))}
}

// Stat tells the length of a blob. That its content is right was seen when it was added, and
// is for the client to see again.
func (b *blobs) Stat(_ context.Context, _ string, h v1.Hash) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if text, ok := b.texts[h]; ok {
		return int64(len(text)), nil
	}
	if f, ok := b.files[h]; ok {
		return f.size, nil
	}
	return 0, ggcr.ErrNotFound
}

// Get opens a blob.
func (b *blobs) Get(_ context.Context, _ string, h v1.Hash) (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if text, ok := b.texts[h]; ok {
		return io.NopCloser(bytes.NewReader(text)), nil
	}
	if f, ok := b.files[h]; ok {
		return os.Open(f.name)
	}
	return nil, ggcr.ErrNotFound
}

func digestOf(data []byte) v1.Hash {
	sum := sha256.Sum256(data)
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}
}
