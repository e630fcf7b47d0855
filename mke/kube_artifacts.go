package mke

import (
	"context"
	"fmt"
	"net"

	"github.com/mkesdk/mkesdk/registry"
)

// registryArtifacts are [Artifacts] over package registry, asked from this machine
// unless dial leads elsewhere.
type registryArtifacts struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

func (a registryArtifacts) K0s(ctx context.Context, r Registry, version, arch string) (Binary, error) {
	ref, err := registry.K0sReference(r.URL, version)
	if err != nil {
		return Binary{}, fmt.Errorf("%w: MkeConfig spec.registries.imageRegistry: %w", ErrInvalid, err)
	}
	client, err := registry.New(registry.Config{URL: r.URL, CAData: []byte(r.CAData), Dial: a.dial})
	if err != nil {
		return Binary{}, fmt.Errorf("%w: MkeConfig spec.registries.imageRegistry: %w", ErrInvalid, err)
	}
	defer client.Close() // gives back idle connections only; Open makes new ones
	b, err := client.Binary(ctx, ref, "linux/"+arch)
	if isAny[*registry.MissingError](err) {
		return Binary{}, fmt.Errorf("%w: push it there, or correct spec.registries.imageRegistry.url of the MkeConfig", err)
	}
	if err != nil {
		return Binary{}, err
	}
	return Binary{Digest: b.Digest, Size: b.Size, Open: b.Open}, nil
}
