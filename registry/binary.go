package registry

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Annotations of the layers of a k0s artifact.
const (
	// TitleAnnotation is the file name of a layer, as OCI names it. That of the binary is "k0s".
	TitleAnnotation = "org.opencontainers.image.title"
	// PlatformAnnotation is the platform of a layer, as os/architecture, where one manifest
	// holds several and they have no platform field.
	PlatformAnnotation = "mke.mirantis.com/platform"
)

// binaryTitle is the title of a layer that is the binary.
const binaryTitle = "k0s"

// A Binary is the k0s binary of one platform in a registry.
type Binary struct {
	Ref      string // the reference it was asked by
	Digest   string // of the binary itself: sha256:…
	Size     int64  // of the binary, in bytes
	Platform string // os/architecture; empty if the artifact does not say which it is for

	client *Client
	repo   name.Repository
}

// Binary finds the k0s binary for a platform (linux/amd64) in the artifact that ref names. It
// reads manifests only; [Binary.Open] reads the binary.
//
// The artifact is read in two forms. An index has a manifest for each platform, each with
// one layer titled k0s. A manifest without an index has a layer titled k0s for each
// platform, told apart by the platform field of its descriptor or by PlatformAnnotation.
// A lone layer titled k0s that says neither is taken for any platform and leaves
// Binary.Platform empty: the file as the usual tools push it, and whoever stages it runs
// `k0s version` on the host before it is put in place.
//
// The errors are those of [Client.Verify], and a [*PlatformError] for an artifact that
// does not have the platform.
func (c *Client) Binary(ctx context.Context, ref, platform string) (*Binary, error) {
	want, err := parsePlatform(platform)
	if err != nil {
		return nil, err
	}
	r, err := parseReference(ref)
	if err != nil {
		return nil, err
	}
	b := &Binary{Ref: ref, client: c, repo: r.Context()}
	data, _, err := c.getManifest(ctx, resource{b.repo, "manifests", r.Identifier()})
	if err != nil {
		return nil, withNeed(err, []string{"the k0s binary"})
	}
	m, err := readManifest(data)
	if err != nil {
		return nil, fmt.Errorf("reading the manifest %s: %w", ref, err)
	}
	if m.index {
		entry, err := pick(ref, want, m.manifests)
		if err != nil {
			return nil, err
		}
		b.Platform = platformOf(entry)
		data, _, err := c.getManifest(ctx, resource{b.repo, "manifests", entry.Digest.String()})
		if err != nil {
			return nil, withNeed(err, []string{ref + " for " + want})
		}
		if m, err = readManifest(data); err != nil || m.index {
			return nil, fmt.Errorf("reading the manifest %s@%s of %s: it has to be that of an image: %v", b.repo, entry.Digest, ref, err)
		}
		// The index has said the platform; what the layer says of it comes second.
		if layers := titled(m.layers); len(layers) == 1 {
			layers[0].Platform = entry.Platform
			m.layers = layers
		}
	}
	layer, err := pick(ref, want, titled(m.layers))
	if err != nil {
		return nil, err
	}
	if layer.Digest.Algorithm != "sha256" || layer.Size <= 0 {
		return nil, fmt.Errorf("reading the manifest %s: its layer %s of %d bytes cannot be a binary", ref, layer.Digest, layer.Size)
	}
	b.Digest, b.Size = layer.Digest.String(), layer.Size
	if b.Platform == "" {
		b.Platform = platformOf(layer)
	}
	return b, nil
}

// Open reads the binary. What was read may be used only once Read has returned io.EOF: a
// binary that is not the one of Digest ends in a [*DigestError] in its place. The context
// bounds the whole reading.
func (b *Binary) Open(ctx context.Context) (io.ReadCloser, error) {
	resp, err := b.client.do(ctx, http.MethodGet, resource{b.repo, "blobs", b.Digest}, "")
	if err != nil {
		return nil, withNeed(err, []string{b.Ref})
	}
	return &verified{binary: b, body: resp.Body, sum: sha256.New()}, nil
}

// A verified reader hands out what comes and says at the end whether it was right.
type verified struct {
	binary *Binary
	body   io.ReadCloser
	sum    hash.Hash
	n      int64
	err    error
}

// Read reads on, and fails in place of io.EOF if length or digest are not as promised.
func (v *verified) Read(p []byte) (int, error) {
	if v.err != nil {
		return 0, v.err
	}
	n, err := v.body.Read(p)
	v.sum.Write(p[:n])
	v.n += int64(n)
	damaged := &DigestError{Ref: v.binary.Ref, Want: v.binary.Digest, WantSize: v.binary.Size, GotSize: v.n}
	switch {
	case v.n > v.binary.Size:
		v.err = damaged
		return 0, v.err
	case err == nil:
		return n, nil
	case err != io.EOF:
		v.err = fmt.Errorf("reading %s after %d of %d bytes: %w", v.binary.Ref, v.n, v.binary.Size, err)
	case v.n < v.binary.Size:
		v.err = damaged
	default:
		v.err = io.EOF
		if got := "sha256:" + hex.EncodeToString(v.sum.Sum(nil)); got != v.binary.Digest {
			damaged.Got = got
			v.err = damaged
		}
	}
	return n, v.err
}

// Close ends the reading, at its end or before.
func (v *verified) Close() error { return v.body.Close() }

// A manifest is either form, as far as a binary needs it.
type manifest struct {
	index     bool
	manifests []v1.Descriptor
	layers    []v1.Descriptor
}

// readManifest reads an index or an image manifest. Which of the two it is, its content
// says: not every registry keeps the media type.
func readManifest(data []byte) (manifest, error) {
	index, err := v1.ParseIndexManifest(bytes.NewReader(data))
	if err != nil {
		return manifest{}, err
	}
	if index.MediaType.IsIndex() || len(index.Manifests) > 0 {
		return manifest{index: true, manifests: index.Manifests}, nil
	}
	image, err := v1.ParseManifest(bytes.NewReader(data))
	if err != nil {
		return manifest{}, err
	}
	return manifest{layers: image.Layers}, nil
}

// titled returns the layers that are a k0s binary by their title.
func titled(layers []v1.Descriptor) []v1.Descriptor {
	return slices.DeleteFunc(slices.Clone(layers), func(d v1.Descriptor) bool {
		return d.Annotations[TitleAnnotation] != binaryTitle
	})
}

// pick returns the one descriptor for a platform. Two are one too many: which of them is
// meant is not for a client to guess.
func pick(ref, want string, from []v1.Descriptor) (v1.Descriptor, error) {
	var have []string
	var match []v1.Descriptor
	for _, d := range from {
		p := platformOf(d)
		if p != "" {
			have = append(have, p)
		}
		if p == want {
			match = append(match, d)
		}
	}
	switch {
	case len(match) == 1:
		return match[0], nil
	case len(match) > 1:
		return v1.Descriptor{}, fmt.Errorf("%s has %d entries for %s, it has to have one", ref, len(match), want)
	case len(from) == 1 && len(have) == 0 && from[0].Annotations[TitleAnnotation] == binaryTitle:
		return from[0], nil
	}
	return v1.Descriptor{}, &PlatformError{Ref: ref, Want: want, Have: have}
}

// platformOf is what a descriptor says of its platform, as os/architecture, or "".
func platformOf(d v1.Descriptor) string {
	if p := d.Platform; p != nil && p.OS != "" && p.Architecture != "" {
		return p.OS + "/" + p.Architecture
	}
	return d.Annotations[PlatformAnnotation]
}

// parsePlatform wants os/architecture. Variants are left out: k0s has one binary for each
// architecture.
func parsePlatform(s string) (string, error) {
	system, arch, ok := strings.Cut(s, "/")
	if !ok || system == "" || arch == "" || strings.ContainsAny(arch, "/ ") {
		return "", &RefError{Kind: "platform", Text: s, Problem: "write os/architecture in Go's names: linux/amd64"}
	}
	return s, nil
}

// sha256Of is the digest of data.
func sha256Of(data []byte) v1.Hash {
	sum := sha256.Sum256(data)
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}
}
