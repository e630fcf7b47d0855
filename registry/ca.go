package registry

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"
)

// rootsWith returns the system's roots and those of the PEM bundle, or nil (the system's)
// if there is no bundle. One certificate of a CA that is valid now is enough: a bundle
// keeps the old root for a while when roots are changed, and a certificate that is of no
// use is not trusted, so it does no harm.
func rootsWith(bundle []byte) (*x509.CertPool, error) {
	if len(bundle) == 0 {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // a machine without roots: the bundle alone vouches
	}
	now := time.Now()
	var usable int
	var first error
	for len(bundle) > 0 {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, &CAError{Problem: fmt.Sprintf("a certificate in it does not parse: %v", err)}
		}
		if err := checkCA(cert, now); err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		pool.AddCert(cert)
		usable++
	}
	switch {
	case usable > 0:
		return pool, nil
	case first != nil:
		return nil, first
	}
	return nil, &CAError{Problem: "there is no certificate in it; it has to hold the CA of the registry as PEM (-----BEGIN CERTIFICATE-----), or be left out"}
}

// checkCA tells why a certificate cannot vouch for a registry.
func checkCA(c *x509.Certificate, now time.Time) error {
	subject := c.Subject.String()
	switch {
	case !c.BasicConstraintsValid || !c.IsCA:
		return &CAError{Subject: subject, Problem: "it is not that of a CA; give the certificate of the CA that signed the registry's"}
	case c.KeyUsage != 0 && c.KeyUsage&x509.KeyUsageCertSign == 0:
		return &CAError{Subject: subject, Problem: "its key may not sign certificates; give the certificate of the CA that signed the registry's"}
	case now.After(c.NotAfter):
		return &CAError{Subject: subject, Problem: "it expired " + c.NotAfter.UTC().Format(time.RFC3339)}
	case now.Before(c.NotBefore):
		return &CAError{Subject: subject, Problem: "it is not valid before " + c.NotBefore.UTC().Format(time.RFC3339) + "; is the clock of this machine right?"}
	}
	return nil
}
