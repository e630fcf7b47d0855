package mke

import (
	"errors"
	"io/fs"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mkesdk/mkesdk/etcdverify"
	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/registry"
	"github.com/mkesdk/mkesdk/transport"
)

// Retryable reports whether making the same call again is a sound answer to err.
// It is not if the answer would be the same until somebody has mended something:
// wrong input, another cluster's host, a host that is refused, a failed pre-flight
// check, a version, credentials or a host key that are not accepted, an artifact that
// the registry does not have, a local file that can't be read. Nor is it if etcd is among the causes: there the
// runbook comes first. Several failures are retryable if each of them is.
func Retryable(err error) bool {
	if err == nil {
		return false
	}
	for _, final := range []error{
		ErrInvalid, ErrOtherCluster, ErrVersion,
		transport.ErrHostKey, transport.ErrAuth, transport.ErrSudo,
	} {
		if errors.Is(err, final) {
			return false
		}
	}
	return !isAny[*etcdverify.Error](err) && !isAny[*PreflightError](err) && !isAny[*HostError](err) &&
		!isAny[*hosts.FileError](err) && !localFile(err) && !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err) &&
		!isAny[*registry.MissingError](err) && !isAny[*registry.AuthError](err) && !isAny[*registry.CAError](err)
}

// isAny reports whether an E is in err's tree.
func isAny[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// localFile reports whether err is about a file of this machine. The files of hosts
// are reported by their connections and carry no error number of this system.
func localFile(err error) bool {
	p, ok := errors.AsType[*fs.PathError](err)
	return ok && isAny[syscall.Errno](p.Err)
}
