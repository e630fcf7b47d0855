package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"net/http"

	"github.com/google/go-containerregistry/pkg/name"
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
	return &verified{binary: b, resp: resp, sum: sha256.New()}, nil
}

// A verified reader hands out what comes and says at the end whether it was right.
type verified struct {
	binary *Binary
	resp   *http.Response
	sum    hash.Hash
	n      int64
	err    error
}

// Read reads on, and fails in place of io.EOF if length or digest are not as promised.
func (v *verified) Read(p []byte) (int, error) {
	if v.err != nil {
		return 0, v.err
	}
	n, err := v.resp.Body.Read(p)
	v.sum.Write(p[:n])
	v.n += int64(n)
	damaged := &DigestError{Ref: v.binary.Ref, Want: v.binary.Digest, WantSize: v.binary.Size, GotSize: v.n}
	switch {
	case err != nil && v.resp.Request.Context().Err() != nil:
		// A server that sees its client leave may end the content in good order.
		v.err = fmt.Errorf("reading %s after %d of %d bytes: %w", v.binary.Ref, v.n, v.binary.Size, context.Cause(v.resp.Request.Context()))
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
func (v *verified) Close() error { return v.resp.Body.Close() }
