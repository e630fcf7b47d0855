package registry_test

import (
	"bytes"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mkesdk/mkesdk/registry"
)

func TestCAData(t *testing.T) {
	good := newCA(t, nil).pem
	expired := newCA(t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }).pem
	early := newCA(t, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(30 * time.Minute) }).pem
	notCA := newCA(t, func(c *x509.Certificate) { c.IsCA, c.KeyUsage = false, 0 }).pem
	noSign := newCA(t, func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature }).pem
	key := []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
	broken := []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")

	for _, tc := range []struct {
		name string
		pem  []byte
		want string // of the error; none if empty
	}{
		{"not given", nil, ""},
		{"empty is not given", []byte{}, ""},
		{"good", good, ""},
		{"with text around", append([]byte("Issuer: me\n"), good...), ""},
		{"expired beside good", append(bytes.Clone(expired), good...), ""},
		{"blank", []byte(" \n"), "no certificate in it"},
		{"no PEM", []byte("MIIB"), "no certificate in it"},
		{"a key", key, "no certificate in it"},
		{"expired", expired, "expired"},
		{"not yet valid", early, "not valid before"},
		{"not a CA", notCA, "not that of a CA"},
		{"may not sign", noSign, "may not sign"},
		{"broken", broken, "does not parse"},
		{"broken beside good", append(bytes.Clone(good), broken...), "does not parse"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := registry.New(registry.Config{CAData: tc.pem})
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if ca, ok := errors.AsType[*registry.CAError](err); !ok || !strings.Contains(ca.Error(), tc.want) {
				t.Errorf("got %v, want a CAError that says %q", err, tc.want)
			}
		})
	}
}

func TestNewReportsAllThatIsWrong(t *testing.T) {
	_, err := registry.New(registry.Config{URL: "oci://x.test/mke", CAData: []byte("?")})
	_, url := errors.AsType[*registry.RefError](err)
	_, ca := errors.AsType[*registry.CAError](err)
	if !url || !ca {
		t.Errorf("got %v, want both a RefError and a CAError", err)
	}
}

func FuzzCAData(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"))
	f.Add([]byte(" "))
	f.Fuzz(func(t *testing.T, data []byte) {
		// Whatever is accepted and is not nothing has to hold a certificate.
		_, err := registry.New(registry.Config{CAData: data})
		if err == nil && len(data) > 0 && !bytes.Contains(data, []byte("-----BEGIN CERTIFICATE-----")) {
			t.Errorf("accepted %q", data)
		}
	})
}
