package registry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/mkesdk/mkesdk/registry"
)

// The forms in which a k0s artifact may be in a registry, and what is found for
// linux/amd64. "" stands for not found.
func TestBinaryForms(t *testing.T) {
	amd64 := &v1.Platform{OS: "linux", Architecture: "amd64"}
	arm64 := &v1.Platform{OS: "linux", Architecture: "arm64", Variant: "v8"}
	layer := func(t *testing.T, s *server, content string, p *v1.Platform, more map[string]string) v1.Descriptor {
		a := maps.Clone(titleK0s)
		maps.Copy(a, more)
		d := s.putBlob(t, content, a)
		d.Platform = p
		return d
	}
	image := func(t *testing.T, s *server, p *v1.Platform, layers ...v1.Descriptor) v1.Descriptor {
		d := s.putManifest(t, "", layers...)
		d.Platform = p
		return d
	}
	for _, tc := range []struct {
		name string
		make func(t *testing.T, s *server)
		want string // content that is found
		on   string // its platform
		fail string // of the error
	}{
		{name: "index", want: "for amd64", on: "linux/amd64", make: func(t *testing.T, s *server) {
			s.putIndex(t, "v1", image(t, s, arm64, layer(t, s, "for arm64", nil, nil)), image(t, s, amd64, layer(t, s, "for amd64", nil, nil)))
		}},
		{name: "index, other layers beside", want: "for amd64", on: "linux/amd64", make: func(t *testing.T, s *server) {
			s.putIndex(t, "v1", image(t, s, amd64, s.putBlob(t, "licence", map[string]string{registry.TitleAnnotation: "LICENSE"}), layer(t, s, "for amd64", nil, nil)))
		}},
		{name: "platform field of the layer", want: "for amd64", on: "linux/amd64", make: func(t *testing.T, s *server) {
			s.putManifest(t, "v1", layer(t, s, "for arm64", arm64, nil), layer(t, s, "for amd64", amd64, nil))
		}},
		{name: "platform annotation of the layer", want: "for amd64", on: "linux/amd64", make: func(t *testing.T, s *server) {
			s.putManifest(t, "v1", layer(t, s, "for arm64", nil, map[string]string{registry.PlatformAnnotation: "linux/arm64"}),
				layer(t, s, "for amd64", nil, map[string]string{registry.PlatformAnnotation: "linux/amd64"}))
		}},
		{name: "a lone layer that says nothing", want: "for whom?", on: "", make: func(t *testing.T, s *server) {
			s.putManifest(t, "v1", layer(t, s, "for whom?", nil, nil))
		}},
		{name: "a lone layer for another platform", fail: "it has linux/arm64", make: func(t *testing.T, s *server) {
			s.putManifest(t, "v1", layer(t, s, "for arm64", arm64, nil))
		}},
		{name: "index without the platform", fail: "it has linux/arm64", make: func(t *testing.T, s *server) {
			s.putIndex(t, "v1", image(t, s, arm64, layer(t, s, "for arm64", nil, nil)))
		}},
		{name: "index without platforms", fail: "it names no platform", make: func(t *testing.T, s *server) {
			s.putIndex(t, "v1", image(t, s, nil, layer(t, s, "for whom?", nil, nil)))
		}},
		{name: "two layers that say nothing", fail: "it names no platform", make: func(t *testing.T, s *server) {
			s.putManifest(t, "v1", layer(t, s, "one", nil, nil), layer(t, s, "two", nil, nil))
		}},
		{name: "twice the platform", fail: "2 entries for linux/amd64", make: func(t *testing.T, s *server) {
			s.putManifest(t, "v1", layer(t, s, "one", amd64, nil), layer(t, s, "two", amd64, nil))
		}},
		{name: "no title", fail: "holds no k0s binary", make: func(t *testing.T, s *server) {
			s.putManifest(t, "v1", s.putBlob(t, "an image", nil))
		}},
		{name: "index of an index", fail: "has to be that of an image", make: func(t *testing.T, s *server) {
			d := s.putIndex(t, "inner", image(t, s, amd64, layer(t, s, "deep", nil, nil)))
			d.Platform = amd64
			s.putIndex(t, "v1", d)
		}},
		{name: "not there", fail: "does not have", make: func(*testing.T, *server) {}},
		{name: "no JSON", fail: "reading the manifest", make: func(t *testing.T, s *server) {
			s.put(t, "PUT", "/v2/mke/k0s/manifests/v1", "application/vnd.oci.image.manifest.v1+json", []byte("<html>"))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t)
			tc.make(t, s)
			b, err := s.client(t).Binary(t.Context(), s.host()+"/mke/k0s:v1", "linux/amd64")
			if tc.fail != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fail) {
					t.Fatalf("got %+v, %v, want an error that says %q", b, err, tc.fail)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if b.Platform != tc.on || b.Size != int64(len(tc.want)) || b.Digest != digestOf([]byte(tc.want)).String() {
				t.Errorf("got %+v", b)
			}
			r, err := b.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if err != nil || string(got) != tc.want {
				t.Errorf("read %q, %v", got, err)
			}
			if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Errorf("after the end: %d, %v", n, err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBinaryRefusesBadPlatform(t *testing.T) {
	c := newClient(t, registry.Config{})
	for _, p := range []string{"", "linux", "linux/", "/amd64", "linux/amd64/v2", "linux/x 86"} {
		if _, err := c.Binary(t.Context(), "r.test/k0s:v1", p); !isRefError(err, "platform") {
			t.Errorf("platform %q: %v, want a RefError", p, err)
		}
	}
}

// Content that is not what the manifest promised never ends in io.EOF.
func TestDamagedBinary(t *testing.T) {
	const content = "0123456789abcdef"
	send := func(body string, length int) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			if length >= 0 {
				w.Header().Set("Content-Length", fmt.Sprint(length))
			}
			io.WriteString(w, body)
			if length < 0 {
				w.(http.Flusher).Flush() // chunked: no length is told
			}
		}
	}
	for name, tc := range map[string]struct {
		send   func(http.ResponseWriter)
		digest bool // a DigestError is wanted; else any error
	}{
		"a changed byte":           {send("0123456789abcdeF", 16), true},
		"short, and says so":       {send(content[:15], 15), true},
		"short, length not told":   {send(content[:15], -1), true},
		"cut off":                  {send(content[:15], 16), false},
		"longer":                   {send(content+"x", 17), true},
		"longer, length not told":  {send(content+strings.Repeat("x", 1<<16), -1), true},
		"empty":                    {send("", 0), true},
		"an error page of success": {send("<html>login</html>", -1), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			b, err := s.client(t).Binary(t.Context(), s.putIndexed(t, "v1", content), "linux/amd64")
			if err != nil {
				t.Fatal(err)
			}
			s.before = func(w http.ResponseWriter, _ *http.Request) bool { tc.send(w); return true }
			r, err := b.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			got, err := io.ReadAll(r)
			if _, ok := errors.AsType[*registry.DigestError](err); err == nil || ok != tc.digest {
				t.Errorf("read %q, %v", got, err)
			}
			if len(got) > len(content) {
				t.Errorf("handed out %d bytes of %d", len(got), len(content))
			}
			if _, again := r.Read(make([]byte, 1)); again == nil || again == io.EOF {
				t.Errorf("the error is forgotten: %v", again)
			}
		})
	}
}

func TestBinaryWhoseBlobIsGone(t *testing.T) {
	s := newServer(t)
	ref := s.putIndexed(t, "v1", "binary")
	b, err := s.client(t).Binary(t.Context(), ref, "linux/amd64")
	if err != nil {
		t.Fatal(err)
	}
	s.before = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusNotFound); return true }
	_, err = b.Open(t.Context())
	if m, ok := errors.AsType[*registry.MissingError](err); !ok || !slices.Contains(m.NeededBy, ref) {
		t.Errorf("got %v, want a MissingError that names %s", err, ref)
	}
}

func TestManifestOfAnotherDigest(t *testing.T) {
	s := newServer(t)
	wrong := digestOf([]byte("something else")).String()
	s.putIndexed(t, "v1", "binary")
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		r.URL.Path = "/v2/mke/k0s/manifests/v1"
		return false
	}
	ref := s.host() + "/mke/k0s@" + wrong
	_, err := s.client(t).Binary(t.Context(), ref, "linux/amd64")
	if d, ok := errors.AsType[*registry.DigestError](err); !ok || d.Want != wrong {
		t.Errorf("Binary: %v, want a DigestError", err)
	}
	_, err = s.client(t).Verify(t.Context(), registry.Artifact{Ref: ref})
	if d, ok := errors.AsType[*registry.DigestError](err); !ok || d.Want != wrong {
		t.Errorf("Verify: %v, want a DigestError", err)
	}
}

// A reader that is stuck ends with the context it was opened with.
func TestOpenEndsWithItsContext(t *testing.T) {
	s := newServer(t)
	content := strings.Repeat("x", 1<<20)
	b, err := s.client(t).Binary(t.Context(), s.putIndexed(t, "v1", content), "linux/amd64")
	if err != nil {
		t.Fatal(err)
	}
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		io.WriteString(w, content[:1000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, err := b.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.CopyN(io.Discard, r, 1000); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","size":1,"digest":"sha256:` + strings.Repeat("0", 64) + `","platform":{"architecture":"amd64","os":"linux"}}]}`))
	f.Add([]byte(`{"schemaVersion":2,"layers":[{"mediaType":"x","size":3,"digest":"sha256:` + strings.Repeat("a", 64) + `","annotations":{"org.opencontainers.image.title":"k0s"}}]}`))
	f.Add([]byte(`{"layers":[{"size":-1,"annotations":{"org.opencontainers.image.title":"k0s"}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := clientOf(t, func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(data))}, nil
		})
		b, err := c.Binary(t.Context(), "r.test/mke/k0s:v1", "linux/amd64")
		if err == nil && (b.Size <= 0 || len(b.Digest) != len("sha256:")+64 || (b.Platform != "" && b.Platform != "linux/amd64")) {
			t.Errorf("a wrong yes: %+v", b)
		}
	})
}
