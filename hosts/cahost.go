package hosts

import (
	"path"
	"slices"
)

// findCA makes one finding of the places where a cluster CA can be. The join token
// counts only where a service is installed that waits for its CA: k0s reset leaves
// it behind, so on a host without a service it says nothing about membership.
func (f *Facts) findCA(pki, kubelet, token block) CA {
	type place struct {
		file string
		block
	}
	places := []place{{path.Join(f.DataDir, "pki/ca.crt"), pki}, {path.Join(f.DataDir, "kubelet.conf"), kubelet}}
	installed := f.K0s.Controller.State != UnitNone || f.K0s.Worker.State != UnitNone
	if pki.status == No && kubelet.status == No && installed {
		places = append(places, place{f.K0s.TokenFile, token})
	}
	for _, s := range []Service{f.K0s.Controller, f.K0s.Worker} {
		if s.State != UnitNone && len(s.Args) == 0 {
			return CA{Why: "the command line of the service could not be read, so it is not known where its data is"}
		}
	}
	ca := CA{Found: No}
	for _, p := range places {
		if p.status == No {
			continue
		}
		print, err := Fingerprint([]byte(p.text()))
		if p.status == Unknown || err != nil {
			ca.Found = Unknown
			ca.Why = p.file + " cannot be read as one"
			continue
		}
		switch {
		case ca.Fingerprint == "":
			ca.Fingerprint, ca.Source = print, p.file
			if ca.Found == No {
				ca.Found = Yes
			}
		case print != ca.Fingerprint && !slices.Contains(ca.Others, print):
			ca.Found = Unknown
			ca.Others = append(ca.Others, print)
			ca.Why = ca.Source + " and " + p.file + " hold different ones"
		}
	}
	return ca
}

// parseLeftovers reads what an earlier k0s has left.
func (f *Facts) parseLeftovers(r *reader) {
	l := &f.Leftovers
	take := func(name, dir string) Tri {
		b := r.block(name)
		if b.status == Yes && dir != "" {
			for _, entry := range b.lines {
				l.Paths = append(l.Paths, path.Join(dir, entry))
			}
		}
		return b.status
	}
	l.DataDir = take("left-data", f.DataDir)
	l.EtcdCA = take("left-etcd-ca", path.Join(f.DataDir, "pki/etcd"))
	if l.EtcdData = r.tri("left-etcd-data"); l.EtcdData == Yes {
		l.Paths = append(l.Paths, path.Join(f.DataDir, "etcd/member"))
	}
	l.KubeletRoot = take("left-kubelet", f.KubeletRoot)
	l.RunDir = take("left-run", "/run/k0s")
	l.CNI = take("left-cni", "")
	mounts := r.block("left-mounts")
	switch {
	case mounts.status != Yes:
	case len(mounts.lines) == 0:
		l.Mounts = No
	default:
		l.Mounts = Yes
		for _, m := range mounts.lines {
			l.Paths = append(l.Paths, m+" (mounted)")
		}
	}
}
