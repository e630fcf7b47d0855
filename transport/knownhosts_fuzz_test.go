package transport

import (
	"testing"

	"golang.org/x/crypto/ssh"
)

func FuzzKnownHosts(f *testing.F) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBqXqmDHyxkPLkhKCqIUA3EaPQmjB1Ct4vMLpKCIAtMR"
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(key))
	if err != nil {
		f.Fatal(err)
	}
	other, _, _, _, err := ssh.ParseAuthorizedKey([]byte("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAqXqmDHyxkPLkhKCqIUA3EaPQmjB1Ct4vMLpKCIAtMR"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add("h1 "+key+"\n", "h1:22")
	f.Add("|1|F1E1KeoE/eEWhi10WpGv4OdiO6Y=|3988QV0VE8wmZL7suNrYQLITLCg= "+key+"\n", "10.0.0.1:22")
	f.Add("@cert-authority *.example.com,!x "+key+" comment\n", "x.example.com:2222")
	f.Add("@revoked * "+key, "h1:22")
	f.Add("[fd00::1]:2222,fd00::2 "+key+"\r\n", "[fd00::1]:2222")
	f.Add("h1,*,!* "+key+"\n@unknown h1 "+key+"\n", "h1:22")
	f.Fuzz(func(t *testing.T, file, addr string) {
		k := &knownHosts{}
		k.read("file", []byte(file))
		_ = k.Algorithms(addr)
		_ = k.Check(addr, public)
		if k.Check(addr, other) == nil {
			t.Fatal("a key that the file does not have is accepted")
		}
	})
}

func FuzzGlob(f *testing.F) {
	f.Add("a*b?c", "axxbyc")
	f.Fuzz(func(t *testing.T, pattern, s string) {
		if !glob("*", s) || !glob("*"+s, s) && !containsAny(s) {
			t.Fatalf("* does not match %q", s)
		}
		_ = glob(pattern, s)
	})
}

func containsAny(s string) bool {
	for _, r := range s {
		if r == '*' || r == '?' {
			return true
		}
	}
	return false
}
