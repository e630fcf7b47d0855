package registry_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	ggcr "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/mkesdk/mkesdk/registry"
)

// A server is a registry in this process. It fails the test if it is ever shown
// credentials: the package is anonymous.
type server struct {
	*httptest.Server
	store http.Handler
	ca    []byte // PEM of the CA of its certificate; nil over plain http

	mu    sync.Mutex
	asked []string // "HEAD /v2/…", in order

	// before answers in the store's place if it returns true.
	before func(w http.ResponseWriter, r *http.Request) bool
}

// newServer starts a registry with TLS, on 127.0.0.1, under a CA of its own.
func newServer(t *testing.T, names ...string) *server {
	t.Helper()
	s := unstarted(t)
	ca := newCA(t, nil)
	s.ca = ca.pem
	s.TLS = &tls.Config{Certificates: []tls.Certificate{ca.leaf(t, append(names, "127.0.0.1")...)}}
	s.StartTLS()
	return s
}

// newPlainServer starts a registry without TLS.
func newPlainServer(t *testing.T) *server {
	t.Helper()
	s := unstarted(t)
	s.Start()
	return s
}

func unstarted(t *testing.T) *server {
	s := &server{store: ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0)))}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "" {
			t.Errorf("%s %s bore an Authorization header: %q", r.Method, r.URL, got)
		}
		s.mu.Lock()
		s.asked = append(s.asked, r.Method+" "+r.URL.Path)
		s.mu.Unlock()
		if s.before != nil && s.before(w, r) {
			return
		}
		s.store.ServeHTTP(w, r)
	}))
	// A client that refuses the certificate makes the server grumble; that is what is tested.
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(s.Close)
	return s
}

// host is host:port.
func (s *server) host() string { return s.Listener.Addr().String() }

// requests returns what the server was asked so far.
func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

// client is a client of this registry that trusts its CA.
func (s *server) client(t *testing.T) *registry.Client {
	t.Helper()
	return newClient(t, registry.Config{URL: s.host() + "/mke", CAData: s.ca})
}

func newClient(t *testing.T, c registry.Config) *registry.Client {
	t.Helper()
	client, err := registry.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// put stores something past the network, so that no request of the test's own is counted.
func (s *server) put(t *testing.T, method, path, contentType string, body []byte) {
	t.Helper()
	r := httptest.NewRequest(method, path, bytes.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	s.store.ServeHTTP(w, r)
	if w.Code != http.StatusCreated {
		t.Fatalf("%s %s: status %d: %s", method, path, w.Code, w.Body)
	}
}

// putBlob stores a blob in the repository mke/k0s and returns its descriptor as a layer.
func (s *server) putBlob(t *testing.T, content string, annotations map[string]string) v1.Descriptor {
	t.Helper()
	d := v1.Descriptor{MediaType: "application/octet-stream", Digest: digestOf([]byte(content)), Size: int64(len(content)), Annotations: annotations}
	s.put(t, "POST", "/v2/mke/k0s/blobs/uploads/?digest="+d.Digest.String(), "application/octet-stream", []byte(content))
	return d
}

// putManifest stores an image manifest under a tag, or under its digest if that is "".
func (s *server) putManifest(t *testing.T, tag string, layers ...v1.Descriptor) v1.Descriptor {
	t.Helper()
	m := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Layers: layers,
		Config: v1.Descriptor{MediaType: "application/vnd.oci.empty.v1+json", Digest: digestOf([]byte("{}")), Size: 2}}
	return s.putJSON(t, tag, m.MediaType, m)
}

// putIndex stores an index under a tag.
func (s *server) putIndex(t *testing.T, tag string, manifests ...v1.Descriptor) v1.Descriptor {
	t.Helper()
	m := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: manifests}
	return s.putJSON(t, tag, m.MediaType, m)
}

func (s *server) putJSON(t *testing.T, tag string, mt types.MediaType, m any) v1.Descriptor {
	t.Helper()
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	d := v1.Descriptor{MediaType: mt, Digest: digestOf(data), Size: int64(len(data))}
	if tag == "" {
		tag = d.Digest.String()
	}
	s.put(t, "PUT", "/v2/mke/k0s/manifests/"+tag, string(mt), data)
	return d
}

// putIndexed stores a k0s artifact as an index with one platform, and returns its reference.
func (s *server) putIndexed(t *testing.T, tag, content string) string {
	t.Helper()
	m := s.putManifest(t, "", s.putBlob(t, content, titleK0s))
	m.Platform = &v1.Platform{OS: "linux", Architecture: "amd64"}
	s.putIndex(t, tag, m)
	return s.host() + "/mke/k0s:" + tag
}

var titleK0s = map[string]string{registry.TitleAnnotation: "k0s"}

func digestOf(b []byte) v1.Hash {
	sum := sha256.Sum256(b)
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}
}

// An authority signs the certificates of test servers.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// newCA makes a CA, after change has had its way with the certificate.
func newCA(t *testing.T, change func(*x509.Certificate)) *authority {
	t.Helper()
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA of " + t.Name()},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	if change != nil {
		change(tmpl)
	}
	a := &authority{key: newKey(t)}
	a.cert = sign(t, tmpl, tmpl, a.key, a.key)
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
	return a
}

// leaf makes a server's certificate for names and addresses.
func (a *authority) leaf(t *testing.T, names ...string) tls.Certificate {
	t.Helper()
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: names[0]},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, n := range names {
		if strings.Trim(n, "0123456789.") == "" {
			tmpl.IPAddresses = append(tmpl.IPAddresses, parseIP(t, n))
		} else {
			tmpl.DNSNames = append(tmpl.DNSNames, n)
		}
	}
	key := newKey(t)
	cert := sign(t, tmpl, a.cert, key, a.key)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t *testing.T, tmpl, parent *x509.Certificate, key, by *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
