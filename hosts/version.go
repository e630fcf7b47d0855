package hosts

import (
	"slices"
	"strings"
)

// CheckMKE says whether the MKE version that the cluster runs is one that is
// supported; host names whose it is.
func CheckMKE(host, cluster string, supported ...string) []Finding {
	if slices.Contains(supported, cluster) {
		return nil
	}
	return []Finding{{ID: CheckMKEVersion, Severity: Error, Host: host, Want: "MKE " + strings.Join(supported, " or "), Got: orNone(cluster)}}
}

// CheckK0s says whether k0s is the cluster's version on a host where it is
// installed already. A host that gets a fresh install gets the cluster's version.
func CheckK0s(host string, f Facts, a Action, cluster string) []Finding {
	if a.Fresh() || f.K0s.Version == cluster && cluster != "" {
		return nil
	}
	return []Finding{{ID: CheckK0sVersion, Severity: Error, Host: host, Want: "k0s " + orNone(cluster) + ", as the cluster", Got: orNone(f.K0s.Version)}}
}

func orNone(version string) string {
	if version == "" {
		return "none that is known"
	}
	return version
}
