package hosts

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"
)

// testCA makes the certificate of a CA.
func testCA(t testing.TB, name string) string {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, pub, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func print(t testing.TB, text string) string {
	t.Helper()
	p, err := Fingerprint([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFingerprint(t *testing.T) {
	a, b := testCA(t, "a"), testCA(t, "b")
	block, _ := pem.Decode([]byte(a))
	sum := sha256.Sum256(block.Bytes)
	if got, want := print(t, a), hex.EncodeToString(sum[:]); got != want {
		t.Errorf("%s, want the SHA-256 of the certificate, %s", got, want)
	}
	if print(t, "\n"+strings.ReplaceAll(a, "\n", "\r\n")+"\n\n") != print(t, a) {
		t.Error("line ends matter")
	}
	if ab := print(t, a+b); ab == print(t, a) || ab == print(t, b) || ab == print(t, b+a) {
		t.Error("two certificates are taken for one of them")
	}
	if got, err := Fingerprints([]byte(a + b)); err != nil || len(got) != 2 || got[0] != print(t, a) || got[1] != print(t, b) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := Fingerprints([]byte(" \n")); err != nil || got != nil {
		t.Errorf("of nothing: %v, %v", got, err)
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")})
	for name, text := range map[string]string{
		"nothing": "", "text": "hello", "a key": string(key), "a key besides": a + string(key), "cut off": a[:len(a)-30],
		"cut off after one": a + b[:len(b)/2], "damaged": a[:60] + "!" + a[61:], "no certificate": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})),
	} {
		p, err := Fingerprint([]byte(text))
		if err == nil {
			t.Errorf("%s has the fingerprint %s", name, p)
			continue
		}
		if strings.Contains(err.Error(), "c2VjcmV0") {
			t.Errorf("%s: the error repeats it", name)
		}
		if _, err := Fingerprints([]byte(text)); err == nil && text != "" {
			t.Errorf("%s has fingerprints", name)
		}
	}
}

// FuzzFingerprint: only a certificate has one, and always the same.
func FuzzFingerprint(f *testing.F) {
	f.Add([]byte(testCA(f, "a")))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Fingerprint(data)
		if (err == nil) != (len(p) == 64) {
			t.Errorf("%q, %v", p, err)
		}
		all, err2 := Fingerprints(data)
		if err == nil && (err2 != nil || len(all) == 0 || len(all) == 1 && all[0] != p) {
			t.Errorf("%q, but %q, %v", p, all, err2)
		}
	})
}
