package mke

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/mkesdk/mkesdk/hosts/hoststest"
)

const secretPart = "0123456789abcdef"

func pack(t testing.TB, kubeconfig string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(kubeconfig)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func realToken(t testing.TB) string {
	t.Helper()
	token, err := hoststest.Token([]byte("a certificate"), "https://10.0.0.11:6443", "abc123."+secretPart)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestTokenID(t *testing.T) {
	id, err := tokenID(realToken(t))
	if err != nil || id != "abc123" {
		t.Errorf("got %q, %v", id, err)
	}
	real := realToken(t)
	for name, token := range map[string]string{
		"empty":         "",
		"text":          "Error: failed to get k0s status",
		"not gzip":      base64.StdEncoding.EncodeToString([]byte("token: abc123." + secretPart)),
		"cut":           real[:len(real)-len(real)/4/4*4],
		"no token":      pack(t, "users: []"),
		"other token":   pack(t, "token: eyJhbGciOiJSUzI1NiJ9."+secretPart),
		"two documents": real + "\n" + real,
	} {
		id, err := tokenID(token)
		if err == nil || id != "" {
			t.Errorf("%s: got %q, %v", name, id, err)
			continue
		}
		if strings.Contains(err.Error(), secretPart) {
			t.Errorf("%s: the error has the secret: %v", name, err)
		}
	}
}

// FuzzTokenID: whatever the helper prints, an id is six characters that k0s
// token invalidate takes, and an error never holds what was printed.
func FuzzTokenID(f *testing.F) {
	f.Add(realToken(f))
	f.Add("")
	f.Add(pack(f, "token: \"abc123."+secretPart+"\""))
	f.Fuzz(func(t *testing.T, token string) {
		id, err := tokenID(token)
		if (err == nil) != (len(id) == 6) || strings.ContainsAny(id, " -'\"$;\n") {
			t.Errorf("%q: %q, %v", token, id, err)
		}
		if err != nil && len(token) > 12 && strings.Contains(err.Error(), token) {
			t.Errorf("the error holds the token: %v", err)
		}
	})
}
