package registry_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/mkesdk/mkesdk/registry"
)

func parseIP(t *testing.T, s string) net.IP {
	t.Helper()
	ip := net.ParseIP(s)
	if ip == nil {
		t.Fatalf("%q is no address", s)
	}
	return ip
}

func TestVerifyReportsEveryMissingArtifact(t *testing.T) {
	s := newServer(t)
	there := s.putIndexed(t, "v1", "binary")
	base := s.host() + "/mke/"
	found, err := s.client(t).Verify(t.Context(),
		registry.Artifact{Ref: base + "no:1", NeededBy: "DaemonSet a/b"},
		registry.Artifact{Ref: there, NeededBy: "h1"},
		registry.Artifact{Ref: base + "k0s:v9", NeededBy: "h2"},
		registry.Artifact{Ref: base + "no:1", NeededBy: "DaemonSet c/d"},
		registry.Artifact{Ref: "k0s:v1"},
	)
	for _, want := range []string{
		"does not have " + base + "no:1 (needed by DaemonSet a/b, DaemonSet c/d)",
		"does not have " + base + "k0s:v9 (needed by h2)",
		`reference "k0s:v1": the registry is missing`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
	if len(found) != 5 || found[1].Err != nil || !strings.HasPrefix(found[1].Digest, "sha256:") {
		t.Fatalf("found %+v", found)
	}
	for _, i := range []int{0, 2, 3} {
		if m, ok := errors.AsType[*registry.MissingError](found[i].Err); !ok || m.Ref != found[i].Ref {
			t.Errorf("%s: %v, want it missing", found[i].Ref, found[i].Err)
		}
	}
	if asked := s.requests(); len(asked) != 3 {
		t.Errorf("a reference was asked for more than once: %q", asked)
	}

	// What Verify found is what is served by that digest.
	byDigest := base + "k0s@" + found[1].Digest
	again, err := s.client(t).Verify(t.Context(), registry.Artifact{Ref: byDigest})
	if err != nil || again[0].Digest != found[1].Digest {
		t.Errorf("by digest: %+v, %v", again, err)
	}
	if none, err := s.client(t).Verify(t.Context()); err != nil || len(none) != 0 {
		t.Errorf("nothing to verify: %v, %v", none, err)
	}
}

func TestRegistryThatDoesNotTellTheDigest(t *testing.T) {
	for name, before := range map[string]func(http.ResponseWriter, *http.Request, http.Handler) bool{
		"no header": func(w http.ResponseWriter, r *http.Request, store http.Handler) bool {
			rec := httptest.NewRecorder()
			store.ServeHTTP(rec, r)
			w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
			w.WriteHeader(rec.Code)
			w.Write(rec.Body.Bytes())
			return true
		},
		"no HEAD": func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if r.Method != http.MethodHead {
				return false
			}
			w.WriteHeader(http.StatusMethodNotAllowed)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			ref := s.putIndexed(t, "v1", "binary")
			want, err := s.client(t).Verify(t.Context(), registry.Artifact{Ref: ref})
			if err != nil {
				t.Fatal(err)
			}
			s.before = func(w http.ResponseWriter, r *http.Request) bool { return before(w, r, s.store) }
			got, err := s.client(t).Verify(t.Context(), registry.Artifact{Ref: ref})
			if err != nil || got[0].Digest != want[0].Digest {
				t.Errorf("got %+v, %v, want %s", got, err, want[0].Digest)
			}
		})
	}
}

func TestCredentialsDemanded(t *testing.T) {
	realm := newServer(t)
	for status, challenge := range map[int]string{
		http.StatusUnauthorized: `Bearer realm="` + realm.URL + `/token",service="r",scope="repository:mke/k0s:pull"`,
		http.StatusForbidden:    "",
	} {
		s := newServer(t)
		s.before = func(w http.ResponseWriter, _ *http.Request) bool {
			if challenge != "" {
				w.Header().Set("WWW-Authenticate", challenge)
			}
			w.WriteHeader(status)
			return true
		}
		ref := s.host() + "/mke/k0s:v1"
		_, err := s.client(t).Verify(t.Context(), registry.Artifact{Ref: ref})
		auth, ok := errors.AsType[*registry.AuthError](err)
		if !ok || auth.Status != status || auth.Ref != ref {
			t.Errorf("status %d: %v, want an AuthError", status, err)
		}
		if _, missing := errors.AsType[*registry.MissingError](err); missing {
			t.Errorf("status %d is reported as a missing artifact: %v", status, err)
		}
	}
	if asked := realm.requests(); len(asked) != 0 {
		t.Errorf("the realm of the challenge was asked: %q", asked)
	}
}

func TestServerErrorIsNotMissing(t *testing.T) {
	s := newServer(t)
	s.before = func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusBadGateway)
		return true
	}
	_, err := s.client(t).Verify(t.Context(), registry.Artifact{Ref: s.host() + "/mke/k0s:v1"})
	if _, missing := errors.AsType[*registry.MissingError](err); missing || err == nil || !strings.Contains(err.Error(), "502") {
		t.Errorf("got %v", err)
	}
}

// The client asks through the given Dial, for names that this machine cannot resolve.
func TestDialCarriesEverything(t *testing.T) {
	s := newServer(t, "registry.airgap.test")
	s.putIndexed(t, "v1", "binary")
	var dialed []string
	c := newClient(t, registry.Config{URL: "registry.airgap.test:5000/mke", CAData: s.ca, Jobs: 1,
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialed = append(dialed, network+" "+addr)
			var d net.Dialer
			return d.DialContext(ctx, "tcp", s.host())
		}})
	if _, err := c.Verify(t.Context(), registry.Artifact{Ref: "registry.airgap.test:5000/mke/k0s:v1"}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(dialed, []string{"tcp registry.airgap.test:5000"}) {
		t.Errorf("dialed %q", dialed)
	}
}

func TestVerifyEndsWithItsContext(t *testing.T) {
	s := newServer(t)
	arrived := make(chan struct{})
	s.before = func(_ http.ResponseWriter, r *http.Request) bool {
		close(arrived)
		<-r.Context().Done()
		return true
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, err := s.client(t).Verify(ctx, registry.Artifact{Ref: s.host() + "/mke/k0s:v1"})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
