package hosts

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// Fingerprint returns what tells a cluster CA from another: the SHA-256, in lower
// case hex, of the certificates in a PEM file. Several together make one
// fingerprint, so that a CA of several certificates is the same only as a whole.
// It is an error if there is none, or something that is no certificate.
func Fingerprint(pemData []byte) (string, error) {
	sums, err := certificates(pemData)
	if err != nil {
		return "", err
	}
	if len(sums) == 1 {
		return hex.EncodeToString(sums[0]), nil
	}
	all := sha256.New()
	for _, s := range sums {
		all.Write(s)
	}
	return hex.EncodeToString(all.Sum(nil)), nil
}

// Fingerprints returns the fingerprint of each certificate in a PEM file on its
// own, as that of a kubeconfig, which may trust several. None is no error.
func Fingerprints(pemData []byte) ([]string, error) {
	if strings.TrimSpace(string(pemData)) == "" {
		return nil, nil
	}
	sums, err := certificates(pemData)
	if err != nil {
		return nil, err
	}
	var prints []string
	for _, s := range sums {
		prints = append(prints, hex.EncodeToString(s))
	}
	return prints, nil
}

// certificates returns the SHA-256 of each certificate in pemData, at least one.
func certificates(pemData []byte) (sums [][]byte, err error) {
	rest := pemData
	for {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			break
		}
		if b.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("hosts: a PEM block of type %q where only certificates belong", b.Type)
		}
		if _, err := x509.ParseCertificate(b.Bytes); err != nil {
			return nil, fmt.Errorf("hosts: the certificate cannot be read: %w", err)
		}
		sum := sha256.Sum256(b.Bytes)
		sums = append(sums, sum[:])
	}
	if strings.Count(string(pemData), "-----BEGIN ") != len(sums) {
		return nil, errors.New("hosts: a PEM block that is damaged")
	}
	if len(sums) == 0 {
		return nil, errors.New("hosts: no certificate in it")
	}
	return sums, nil
}
