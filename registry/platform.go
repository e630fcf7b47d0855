package registry

import (
	"fmt"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

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
