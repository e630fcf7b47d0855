package mke

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mkesdk/mkesdk/hosts"
)

// Writing the MkeConfig is tried this often, over about fifteen seconds.
const (
	configAttempts = 10
	configRetry    = 2 * time.Second // at most, between two attempts
)

// AddHosts makes spec.hosts list every one of specs. An entry belongs to the spec with
// the same SSH address, however that is spelled.
//
// An entry is identical, and is not written, if it says what the spec says: role, user
// (root if missing), port (22 if missing), and whatever else the spec sets. What the
// spec leaves empty is not looked at and stays as it is, as do fields that are not known
// here. Of privateAddress and privateInterface, which exclude each other, setting one
// removes the other. An entry of another role is refused: it is another kind of node.
//
// What is written is the object as it was read, with these entries changed or added at
// the end, on condition that nobody has changed it since; else it is read and done
// again. A write whose answer was lost is seen by reading again.
func (k kubeConfig) AddHosts(ctx context.Context, specs []hosts.Spec, guard func(context.Context) error) ([]string, error) {
	var sent []string // by a write whose answer was lost
	var last error
	for attempt := range configAttempts {
		if attempt > 0 {
			if err := sleep(ctx, min(50*time.Millisecond<<attempt, configRetry)); err != nil {
				return nil, errors.Join(last, err)
			}
		}
		object, err := k.read(ctx)
		if errors.Is(err, ErrNotFound) || errors.Is(err, ErrNotStable) || err != nil && !ambiguous(err) {
			return nil, err
		}
		if err != nil {
			last = err
			continue
		}
		changed, err := mergeHosts(object, specs)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", nameOf(object), err)
		}
		if len(changed) == 0 {
			return sent, nil
		}
		if err := guard(ctx); err != nil {
			return nil, err
		}
		_, err = k.client.Resource(mkeConfigs).Namespace(Namespace).Update(ctx, object, metav1.UpdateOptions{})
		switch {
		case err == nil:
			return union(sent, changed), nil
		case apierrors.IsConflict(err):
		case ambiguous(err):
			sent = union(sent, changed)
		default:
			return nil, fmt.Errorf("writing %s: %w", nameOf(object), explain(err))
		}
		last = fmt.Errorf("writing %s: %w", nameOf(object), err)
	}
	return nil, fmt.Errorf("after %d attempts: %w", configAttempts, last)
}

// mergeHosts makes the entries of object list specs, in place. It returns the
// addresses whose entry has changed.
func mergeHosts(object *unstructured.Unstructured, specs []hosts.Spec) ([]string, error) {
	r := &reader{object: object}
	list := slices.Clone(r.list("spec", "hosts"))
	var changed []string
	for _, spec := range specs {
		key := addressKey(spec.SSH.Address)
		var at []int
		for i, entry := range list {
			if s, err := readEntry(entry); err == nil && addressKey(s.SSH.Address) == key {
				at = append(at, i)
			}
		}
		switch len(at) {
		case 0:
			list = append(list, newEntry(spec))
		case 1:
			entry, differs, err := mergeEntry(list[at[0]], spec)
			if err != nil {
				r.bad("spec.hosts[%d]: %w", at[0], err)
			}
			if !differs {
				continue
			}
			list[at[0]] = entry
		default:
			r.bad("spec.hosts lists the address %s %d times, at %v: want one entry for each host", spec.SSH.Address, len(at), at)
		}
		changed = append(changed, spec.SSH.Address)
	}
	if err := errors.Join(r.errs...); err != nil || len(changed) == 0 {
		return nil, err
	}
	return changed, unstructured.SetNestedField(object.Object, list, "spec", "hosts")
}
