package hosts

import (
	"fmt"
	"strings"
)

// SELinuxType returns the type in an SELinux label, as "bin_t" of
// "system_u:object_r:bin_t:s0". It is parsed here, because libraries for SELinux
// understand labels only where they run on Linux, and the caller need not.
func SELinuxType(label string) (string, error) {
	parts := strings.SplitN(strings.TrimSpace(label), ":", 4) // a level has colons of its own
	if len(parts) < 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" || strings.ContainsAny(label, " \t?") {
		return "", fmt.Errorf("%q is no SELinux label: want user:role:type:level", label)
	}
	return parts[2], nil
}
