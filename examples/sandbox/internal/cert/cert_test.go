package cert_test

import (
	"crypto/x509"
	"testing"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/cert"
)

// A client that trusts the CA gets through to each name and address, and to no other.
func TestServerIsTrustedByItsCA(t *testing.T) {
	ca, err := cert.NewCA("sandbox registry")
	if err != nil {
		t.Fatal(err)
	}
	server, err := ca.Server("10.99.0.2", "registry.sandbox")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca.PEM()) {
		t.Fatal("the CA is no PEM certificate")
	}
	leaf, err := x509.ParseCertificate(server.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, ok := range map[string]bool{"10.99.0.2": true, "registry.sandbox": true, "10.99.0.3": false, "other.sandbox": false} {
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); (err == nil) != ok {
			t.Errorf("%s: %v, want trusted: %v", name, err, ok)
		}
	}
	if _, err := ca.Server(); err == nil {
		t.Error("a server without a name got a certificate")
	}
}
