package hosts

import "strconv"

// findLeftovers finds what neither the scenario nor a reset takes care of. What a
// reset takes away is the business of the scenario matrix.
func findLeftovers(f Facts, _ Role, _ Bounds) []Finding {
	if f.Leftovers.Any() == Unknown {
		return one(Error, "nothing left of an earlier k0s below "+f.DataDir, notObserved)
	}
	if f.Leftovers.CNI == Yes {
		return one(Warning, "no CNI configuration in /etc/cni/net.d", "some: the container runtime takes the first it finds there")
	}
	return nil
}

func findInotify(f Facts, _ Role, b Bounds) []Finding {
	var all []Finding
	for _, limit := range []struct {
		name      string
		got, want int64
	}{{"fs.inotify.max_user_instances", f.Inotify.Instances, b.InotifyInstances}, {"fs.inotify.max_user_watches", f.Inotify.Watches, b.InotifyWatches}} {
		if limit.got > 0 && limit.got < limit.want {
			all = append(all, Finding{Severity: Warning, Want: limit.name + " at least " + strconv.FormatInt(limit.want, 10), Got: strconv.FormatInt(limit.got, 10)})
		}
	}
	return all
}

func findSwap(f Facts, _ Role, _ Bounds) []Finding {
	if f.SwapBytes > 0 {
		return one(Warning, "no swap", "%s", size(f.SwapBytes))
	}
	return nil
}

func findFirewalld(f Facts, _ Role, _ Bounds) []Finding {
	if f.Firewalld == Yes {
		return one(Warning, "no firewalld, or one that lets the traffic of pods and nodes pass", "it is active")
	}
	return nil
}

func findNMCloudSetup(f Facts, _ Role, _ Bounds) []Finding {
	if f.NMCloudSetup == Yes {
		return one(Warning, "no nm-cloud-setup, which takes away routes of pods", "it is active")
	}
	return nil
}

func findAppArmor(f Facts, _ Role, _ Bounds) []Finding {
	if f.AppArmor.Enabled == Yes && f.AppArmor.Parser == No {
		return one(Warning, "apparmor_parser, as AppArmor is on", "none: containers may not start; install the package apparmor")
	}
	return nil
}
