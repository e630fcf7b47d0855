package mke

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// explain adds to an error of the API what it means for the caller: ErrNotFound for
// an object that does not exist, and for the faults that have one usual cause, that
// cause.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case gone(err):
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the API server does not serve this resource: %w", err)
	case strings.Contains(err.Error(), "admission webhook"):
		return fmt.Errorf("a check of the cluster's own refused it: %w", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("not allowed: use a kubeconfig of a cluster administrator: %w", err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server does not know who this is: is it a kubeconfig of another cluster, or has its certificate or token expired? %w", err)
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return fmt.Errorf("%w: the API server's certificate is not from the CA that the kubeconfig trusts: is it a kubeconfig of another cluster? %w", ErrOtherCluster, err)
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return fmt.Errorf("%w: the API server's certificate is for another name than the kubeconfig's server: use the address that the certificate names: %w", ErrInvalid, err)
	}
	if _, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		return fmt.Errorf("the API server's certificate cannot be used: has it expired, or is the clock of this machine wrong? %w", err)
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return fmt.Errorf("the API server cannot be reached: %w", err)
	}
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
		return fmt.Errorf("the API server does not answer: %w", err)
	}
	return err
}
