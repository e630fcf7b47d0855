package k0s

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// parseTaints reads taints of the form key=value:effect, key:effect or key.
func parseTaints(in []string) ([]corev1.Taint, error) {
	var out []corev1.Taint
	for _, s := range in {
		pair, effect, _ := strings.Cut(s, ":")
		key, value, _ := strings.Cut(pair, "=")
		t := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
		switch {
		case key == "" || strings.Contains(effect, ":") || strings.Contains(value, "="):
			return nil, fmt.Errorf("invalid taint spec: %s", s)
		case effect != "" && t.Effect != corev1.TaintEffectNoSchedule && t.Effect != corev1.TaintEffectPreferNoSchedule && t.Effect != corev1.TaintEffectNoExecute:
			return nil, fmt.Errorf("invalid taint effect: %s, unsupported taint effect", effect)
		}
		out = append(out, t)
	}
	return out, nil
}
