package mke

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Locks returns the operation locks there are, ordered by the name of their lease.
// Whether one is stale is judged by this machine's clock and at one look, which is
// enough to show and not enough to act on.
func Locks(ctx context.Context, leases Leases) ([]LockInfo, error) {
	all, err := leases.List(ctx)
	if err != nil {
		return nil, err
	}
	var locks []LockInfo
	for i := range all {
		locks = append(locks, lockInfo(&all[i], time.Now()))
	}
	slices.SortFunc(locks, func(a, b LockInfo) int { return strings.Compare(a.Lease, b.Lease) })
	return locks, nil
}

// listLeases reads all locks, within the time that one request may take.
func listLeases(ctx context.Context, leases Leases) ([]coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, lockCall)
	defer cancel()
	return leases.List(ctx)
}

// getLease reads one lease, within the time that one request may take.
func getLease(ctx context.Context, leases Leases, name string) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, lockCall)
	defer cancel()
	return leases.Get(ctx, name)
}

// removeLease deletes l as it is and no other. It is no error if it is gone.
func removeLease(ctx context.Context, leases Leases, l *coordinationv1.Lease) error {
	ctx, cancel := context.WithTimeout(ctx, lockCall)
	defer cancel()
	if err := leases.Delete(ctx, l.Name, string(l.UID), l.ResourceVersion); err != nil && !gone(err) {
		return err
	}
	return nil
}

// returnLease deletes the lease of that name if token holds it, for as long as ctx
// lasts.
func returnLease(ctx context.Context, leases Leases, name, token string) error {
	for {
		l, err := getLease(ctx, leases, name)
		if gone(err) || err == nil && !holds(l, token) {
			return nil
		}
		if err == nil {
			err = removeLease(ctx, leases, l)
		}
		switch {
		case err == nil:
			return nil
		case apierrors.IsConflict(err): // changed since it was read: by our own last renewal, or by whoever annotates leases
		case !ambiguous(err):
			return err
		default:
			if ended := sleep(ctx, lockRetry); ended != nil {
				return errors.Join(err, ended)
			}
		}
	}
}

// gone reports whether err says that the object does not exist. An API server that
// does not know the resource, as one that is just starting, says nothing about the
// object.
func gone(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// ambiguous reports whether err leaves open if the request took effect, or says that
// the server could not attend to it now.
func ambiguous(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err != nil
	}
	code := status.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout
}
