package registry

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// maxManifest is the length of manifest that registries are asked to take at least, by the
// OCI distribution specification. More would be no manifest of ours.
const maxManifest = 4 << 20

// acceptManifests is every form of manifest that an artifact may have.
var acceptManifests = strings.Join([]string{
	string(types.OCIImageIndex), string(types.OCIManifestSchema1),
	string(types.DockerManifestList), string(types.DockerManifestSchema2),
}, ", ")

// headManifest returns the digest under which a reference is served. A registry that does
// not tell it, or knows no HEAD, is asked for the manifest itself.
func (c *Client) headManifest(ctx context.Context, ref name.Reference) (string, error) {
	r := resource{repo: ref.Context(), kind: "manifests", id: ref.Identifier()}
	resp, err := c.do(ctx, http.MethodHead, r, acceptManifests)
	if err != nil {
		if e, ok := errors.AsType[*transport.Error](err); ok && e.StatusCode == http.StatusMethodNotAllowed {
			return c.digestByGet(ctx, r)
		}
		return "", err
	}
	resp.Body.Close()
	digest, err := v1.NewHash(resp.Header.Get("Docker-Content-Digest"))
	if err != nil {
		return c.digestByGet(ctx, r)
	}
	if strings.Contains(r.id, ":") && digest.String() != r.id {
		return "", &DigestError{Ref: r.String(), Want: r.id, Got: digest.String()}
	}
	return digest.String(), nil
}

// digestByGet reads the manifest for its digest alone.
func (c *Client) digestByGet(ctx context.Context, r resource) (string, error) {
	_, digest, err := c.getManifest(ctx, r)
	if err != nil {
		return "", err
	}
	return digest.String(), nil
}

// getManifest returns a manifest and its digest, which for a reference by digest is the one
// asked for.
func (c *Client) getManifest(ctx context.Context, r resource) ([]byte, v1.Hash, error) {
	resp, err := c.do(ctx, http.MethodGet, r, acceptManifests)
	if err != nil {
		return nil, v1.Hash{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxManifest+1))
	if err != nil {
		return nil, v1.Hash{}, fmt.Errorf("reading the manifest %s: %w", r, err)
	}
	if len(data) > maxManifest {
		return nil, v1.Hash{}, fmt.Errorf("reading the manifest %s: it is longer than %d bytes", r, maxManifest)
	}
	digest := sha256Of(data)
	if strings.Contains(r.id, ":") && digest.String() != r.id {
		return nil, v1.Hash{}, &DigestError{Ref: r.String(), Want: r.id, Got: digest.String()}
	}
	return data, digest, nil
}

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

// sha256Of is the digest of data.
func sha256Of(data []byte) v1.Hash {
	sum := sha256.Sum256(data)
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}
}
