package mke

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mkesdk/mkesdk/hosts"
)

// newEntry is the entry of a host that is not listed yet. User and port are written
// even where they are the default: who reads it need not know the default.
func newEntry(spec hosts.Spec) map[string]any {
	entry := map[string]any{"role": string(spec.Role), "ssh": mergeSSH(nil, spec.SSH)}
	mergeHost(entry, spec)
	return entry
}

// mergeEntry returns a copy of an entry that says what spec says, and whether that
// differs from what it said.
func mergeEntry(old any, spec hosts.Spec) (entry map[string]any, differs bool, err error) {
	was, err := readEntry(old)
	if err != nil {
		return nil, false, err
	}
	if was.Role != spec.Role {
		return nil, false, fmt.Errorf("%w: the host %s is listed with role %q and was to be added with role %q: remove it first, or correct its role", ErrInvalid, spec.SSH.Address, was.Role, spec.Role)
	}
	entry = maps.Clone(old.(map[string]any))
	ssh, _ := entry["ssh"].(map[string]any)
	entry["ssh"] = mergeSSH(ssh, spec.SSH)
	mergeHost(entry, spec)
	is, err := readEntry(entry)
	if err != nil {
		return nil, false, err
	}
	return entry, !sameHost(was, is), nil
}

// mergeHost writes what spec sets beside role and ssh.
func mergeHost(entry map[string]any, spec hosts.Spec) {
	if len(spec.InstallFlags) > 0 {
		var flags []any
		for _, f := range spec.InstallFlags {
			flags = append(flags, f)
		}
		entry["installFlags"] = flags
	}
	if spec.PrivateAddress != "" {
		entry["privateAddress"] = spec.PrivateAddress
		delete(entry, "privateInterface")
	}
	if spec.PrivateInterface != "" {
		entry["privateInterface"] = spec.PrivateInterface
		delete(entry, "privateAddress")
	}
}

// mergeSSH returns a copy of old that says what s says. The address stays as it is
// spelled there.
func mergeSSH(old map[string]any, s hosts.SSH) map[string]any {
	ssh := maps.Clone(old)
	if ssh == nil {
		ssh = map[string]any{}
		s = s.WithDefaults()
	}
	if a, ok := ssh["address"].(string); !ok || addressKey(a) != addressKey(s.Address) {
		ssh["address"] = s.Address
	}
	if s.User != "" {
		ssh["user"] = s.User
	}
	if s.Port != 0 {
		ssh["port"] = int64(s.Port)
	}
	if s.KeyPath != "" {
		ssh["keyPath"] = s.KeyPath
	}
	if s.Bastion != nil {
		bastion, _ := ssh["bastion"].(map[string]any)
		if a, _ := bastion["address"].(string); addressKey(a) != addressKey(s.Bastion.Address) {
			bastion = nil // another machine: nothing of the old one holds for it
		}
		ssh["bastion"] = mergeSSH(bastion, *s.Bastion)
	}
	return ssh
}

// sameHost reports whether two entries say the same, the defaults filled in.
func sameHost(a, b hosts.Spec) bool {
	return a.Role == b.Role && sameSSH(a.SSH, b.SSH) &&
		slices.Equal(a.InstallFlags, b.InstallFlags) &&
		addressKey(a.PrivateAddress) == addressKey(b.PrivateAddress) &&
		a.PrivateInterface == b.PrivateInterface
}

func sameSSH(a, b hosts.SSH) bool {
	a, b = a.WithDefaults(), b.WithDefaults()
	if (a.Bastion == nil) != (b.Bastion == nil) {
		return false
	}
	return addressKey(a.Address) == addressKey(b.Address) && a.User == b.User && a.Port == b.Port && a.KeyPath == b.KeyPath &&
		(a.Bastion == nil || sameSSH(*a.Bastion, *b.Bastion))
}

// readEntry reads one entry of spec.hosts. Fields that are not known here are passed
// over; those that are have to be of the right type.
func readEntry(entry any) (hosts.Spec, error) {
	m, ok := entry.(map[string]any)
	if !ok {
		return hosts.Spec{}, errors.New("not an object: want role and ssh")
	}
	var errs []error
	spec := hosts.Spec{
		Role:             hosts.Role(field[string](m, "role", &errs)),
		PrivateAddress:   field[string](m, "privateAddress", &errs),
		PrivateInterface: field[string](m, "privateInterface", &errs),
		SSH:              readSSH(field[map[string]any](m, "ssh", &errs), "ssh", &errs),
	}
	for i, f := range field[[]any](m, "installFlags", &errs) {
		text, ok := f.(string)
		if !ok {
			errs = append(errs, fmt.Errorf("installFlags[%d] is not a string", i))
		}
		spec.InstallFlags = append(spec.InstallFlags, text)
	}
	return spec, errors.Join(errs...)
}

func readSSH(m map[string]any, path string, errs *[]error) hosts.SSH {
	s := hosts.SSH{
		Address: field[string](m, "address", errs),
		User:    field[string](m, "user", errs),
		KeyPath: field[string](m, "keyPath", errs),
	}
	if s.Address == "" {
		*errs = append(*errs, fmt.Errorf("%s.address is missing", path))
	}
	switch port := m["port"].(type) {
	case nil:
	case int64:
		s.Port = int(port)
	case float64:
		s.Port = int(port)
	default:
		*errs = append(*errs, fmt.Errorf("%s.port is not a number", path))
	}
	if b := field[map[string]any](m, "bastion", errs); b != nil {
		bastion := readSSH(b, path+".bastion", errs)
		s.Bastion = &bastion
	}
	return s
}

// field reads one field, the zero value if it is not there.
func field[T any](m map[string]any, key string, errs *[]error) T {
	v, ok := m[key].(T)
	if !ok && m[key] != nil {
		*errs = append(*errs, fmt.Errorf("%s is of the wrong type: %T instead of %T", key, m[key], v))
	}
	return v
}

// union returns every string once, in the order of first appearance.
func union(lists ...[]string) []string {
	var all []string
	for _, s := range slices.Concat(lists...) {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}
