package mke

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Busy looks at the MkeConfig, at the MkeRelease of its version and at k0s's
// autopilot plans, and says what is in progress.
func (k kubeConfig) Busy(ctx context.Context) ([]string, error) {
	config, err := k.read(ctx)
	if err != nil {
		return nil, err
	}
	busy := configBusy(config)
	version, _, _ := unstructured.NestedString(config.Object, "spec", "version")
	releases, err := k.client.Resource(mkeReleases).List(ctx, metav1.ListOptions{})
	switch {
	case isNotServed(err):
		busy = append(busy, fmt.Sprintf("the cluster does not know the resource %s: its installation has not finished, or the MKE operator was removed", mkeReleases.GroupResource()))
	case err != nil:
		return nil, fmt.Errorf("reading the MkeRelease of version %s: %w", version, explain(err))
	default:
		busy = append(busy, releaseBusy(releases.Items, version)...)
	}
	list, err := k.client.Resource(plans).List(ctx, metav1.ListOptions{})
	switch {
	case isNotServed(err): // a k0s without autopilot has no plan
	case err != nil:
		return nil, fmt.Errorf("reading the autopilot plans: %w", explain(err))
	default:
		for i := range list.Items {
			busy = append(busy, planBusy(&list.Items[i])...)
		}
	}
	return busy, nil
}

// isNotServed reports whether the API server does not serve the resource at all. A
// list of a resource that it serves is never "not found".
func isNotServed(err error) bool { return apierrors.IsNotFound(err) }

// progressConditions are the conditions of an MkeConfig or MkeRelease that mean, when
// true, that something is being done to the cluster.
var progressConditions = [...]string{"Upgrading", "Applying", "Resetting", "Progressing"}

// configBusy says what is being done to the cluster.
func configBusy(config *unstructured.Unstructured) []string {
	var busy []string
	if t := config.GetDeletionTimestamp(); t != nil {
		busy = append(busy, fmt.Sprintf("%s is being deleted since %s: the cluster is being reset", nameOf(config), t.UTC().Format("2006-01-02T15:04:05Z")))
	}
	return append(busy, inProgress(config)...)
}

// inProgress says which of the conditions of progress an object has. One that is neither
// true nor false counts: nobody knows that it is not.
func inProgress(object *unstructured.Unstructured) []string {
	var busy []string
	for _, c := range conditions(object) {
		if slices.Contains(progressConditions[:], c.kind) && c.status != "False" {
			busy = append(busy, fmt.Sprintf("%s has the condition %s", nameOf(object), c))
		}
	}
	return busy
}

// releaseBusy says why the release of that version is not ready. A release is found by
// its spec.version, or by its name, with or without the v and an "mke-" before it.
func releaseBusy(releases []unstructured.Unstructured, version string) []string {
	plain := strings.TrimPrefix(version, "v")
	for i := range releases {
		r := &releases[i]
		v, _, _ := unstructured.NestedString(r.Object, "spec", "version")
		name := strings.TrimPrefix(strings.TrimPrefix(r.GetName(), "mke-"), "v")
		if v != version && strings.TrimPrefix(v, "v") != plain && name != plain {
			continue
		}
		busy := inProgress(r)
		for _, c := range conditions(r) {
			if c.kind == "Ready" && c.status == "True" {
				return busy
			}
			if c.kind == "Ready" {
				return append(busy, fmt.Sprintf("%s is not ready: it has the condition %s", nameOf(r), c))
			}
		}
		return append(busy, fmt.Sprintf("%s is not ready: it has no condition Ready", nameOf(r)))
	}
	return []string{fmt.Sprintf("there is no MkeRelease of version %s, which MkeConfig spec.version names: want one with the condition Ready", version)}
}

// Plans are carried out if they have this name, and are over in these states. States that
// are not known here count as in progress. (k0s: pkg/autopilot/constant, and
// pkg/autopilot/controller/plans/core/types.go; InconsistentTargets is from users' reports.)
const planName = "autopilot"

var planOver = [...]string{"Completed", "Warning", "IncompleteTargets", "InconsistentTargets", "Restricted", "ApplyFailed"}

// planBusy says whether an autopilot plan is being carried out.
func planBusy(plan *unstructured.Unstructured) []string {
	state, _, _ := unstructured.NestedString(plan.Object, "status", "state")
	if plan.GetName() != planName || slices.Contains(planOver[:], state) {
		return nil
	}
	if state == "" {
		state = "about to begin"
	}
	return []string{fmt.Sprintf("the autopilot plan %s is in progress: %s", plan.GetName(), state)}
}

// A condition is one of status.conditions.
type condition struct{ kind, status, reason, message string }

// String is the condition as kubectl describe would say it.
func (c condition) String() string {
	s := c.kind + "=" + c.status
	if c.reason != "" {
		s += ", " + c.reason
	}
	if c.message != "" {
		s += ": " + c.message
	}
	return s
}

// conditions reads status.conditions. What is not a condition is left out.
func conditions(object *unstructured.Unstructured) []condition {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	var all []condition
	for _, v := range list {
		if m, ok := v.(map[string]any); ok {
			text := func(key string) string { s, _ := m[key].(string); return s }
			all = append(all, condition{text("type"), text("status"), text("reason"), text("message")})
		}
	}
	return all
}
