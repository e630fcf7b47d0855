package registry_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/mkesdk/mkesdk/registry"
)

func isRefError(err error, kind string) bool {
	e, ok := errors.AsType[*registry.RefError](err)
	return ok && e.Kind == kind
}

func TestK0sReference(t *testing.T) {
	for url, want := range map[string]string{
		"":                               "registry.mirantis.com/mke/k0s:v1.36.3-k0s.2",
		"r.test":                         "r.test/k0s:v1.36.3-k0s.2",
		"r.test/":                        "r.test/k0s:v1.36.3-k0s.2",
		"r.test/mke":                     "r.test/mke/k0s:v1.36.3-k0s.2",
		"r.test/mke/":                    "r.test/mke/k0s:v1.36.3-k0s.2",
		"https://r.test:5000/a/b/mke":    "r.test:5000/a/b/mke/k0s:v1.36.3-k0s.2",
		"HTTP://10.99.0.2:5000/mke":      "10.99.0.2:5000/mke/k0s:v1.36.3-k0s.2",
		"[fd00::1]:5000/mke":             "[fd00::1]:5000/mke/k0s:v1.36.3-k0s.2",
		"localhost/mke":                  "localhost/mke/k0s:v1.36.3-k0s.2",
		"mirror:443/mke":                 "mirror:443/mke/k0s:v1.36.3-k0s.2",
		"registry.example.com/team_a/x1": "registry.example.com/team_a/x1/k0s:v1.36.3-k0s.2",
	} {
		if got, err := registry.K0sReference(url, "v1.36.3+k0s.2"); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", url, got, err, want)
		}
	}
}

func TestK0sReferenceRefusesVersions(t *testing.T) {
	for _, v := range []string{"", "1.36.3", "v", "v1 2", "v1/2", "v1:2", "v1@sha256", "v1.36.3+k0s.2\n", "v" + strings.Repeat("1", 128)} {
		if got, err := registry.K0sReference("r.test/mke", v); !isRefError(err, "k0s version") {
			t.Errorf("version %q: %q, %v, want a RefError", v, got, err)
		}
	}
}

func TestURLRefused(t *testing.T) {
	for url, want := range map[string]string{
		"oci://r.test/mke":              "not \"oci\"",
		"ftp://r.test":                  "not \"ftp\"",
		"https://":                      "host is missing",
		"/mke":                          "host is missing",
		"mirror/mke":                    "Docker Hub",
		"r.test:/mke":                   "no port",
		"r.test:0/mke":                  "between 1 and 65535",
		"r.test:70000/mke":              "between 1 and 65535",
		"r.test:http/mke":               "is no host",
		"fd00::1/mke":                   "is no",
		"r test/mke":                    "is no host",
		"r.test/MKE":                    "no repository path",
		"r.test//mke":                   "no repository path",
		"r.test/mke/../x":               "no repository path",
		"r.test/mke?x=1":                "no repository path",
		"r.test/mke#x":                  "no repository path",
		"https://u:hunter2@r.test/mke":  "come from a Secret",
		"u:hunter2@r.test/mke":          "come from a Secret",
		"https://u:hunter2@:5000":       "come from a Secret",
		"https://u:hunt@er2@r.test/mke": "come from a Secret",
	} {
		_, err := registry.New(registry.Config{URL: url})
		if !isRefError(err, "registry url") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want a RefError that says %q", url, err, want)
			continue
		}
		if strings.Contains(err.Error(), "hunt") {
			t.Errorf("%q: the error shows the password: %v", url, err)
		}
	}
}

func TestReferencesRefused(t *testing.T) {
	c := newClient(t, registry.Config{})
	for _, ref := range []string{
		"", "k0s", "k0s:v1", "mke/k0s:v1", "https://r.test/mke/k0s:v1", "r.test/mke/k0s", "r.test:5000/k0s", "r.test/k0s:", "r.test/:v1",
		"r.test/K0s:v1", "r.test/mke//k0s:v1", "r.test/../k0s:v1", "r.test/k0s@sha256:abc", "r.test/k0s@md5:00", "u:hunter2@r.test/k0s:v1",
	} {
		_, err := c.Verify(t.Context(), registry.Artifact{Ref: ref})
		if !isRefError(err, "reference") {
			t.Errorf("%q: %v, want a RefError", ref, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error shows the password: %v", ref, err)
		}
	}
}

// Whatever is accepted as URL and version makes a reference that names that host and that
// a registry library reads the same way.
func FuzzK0sReference(f *testing.F) {
	for _, url := range []string{"", "registry.mirantis.com/mke", "http://10.0.0.1:5000/mke", "[fd00::1]:5000/a/b", "https://u:p@h/x", "a.b:443//", "mirror/mke"} {
		f.Add(url, "v1.36.3+k0s.2")
	}
	f.Fuzz(func(t *testing.T, url, version string) {
		ref, err := registry.K0sReference(url, version)
		if err != nil {
			if ref != "" {
				t.Errorf("%q beside %v", ref, err)
			}
			return
		}
		tag, err := name.NewTag(ref, name.StrictValidation)
		if err != nil {
			t.Fatalf("%q of %q: %v", ref, url, err)
		}
		if !strings.HasSuffix(tag.RepositoryStr(), "k0s") || tag.TagStr() != strings.ReplaceAll(version, "+", "-") {
			t.Errorf("%q of %q, %q", ref, url, version)
		}
		if _, rest, ok := strings.Cut(url, "://"); ok {
			url = rest
		}
		if host, _, _ := strings.Cut(url, "/"); url != "" && host != "docker.io" && tag.RegistryStr() != host {
			t.Errorf("%q of %q names the registry %q", ref, url, tag.RegistryStr())
		}
	})
}
