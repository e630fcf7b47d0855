package hosts

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// FlagError is one thing that is wrong with the install flags of a host.
type FlagError struct {
	Index   int    // of the flag, from 0
	Flag    string // as "--labels"
	Problem string // what is wrong, and what would be right
}

// Error names the flag and what is wrong with it.
func (e *FlagError) Error() string {
	return fmt.Sprintf("install flag %d (%s): %s", e.Index+1, e.Flag, e.Problem)
}

// installFlag is one flag of k0s install.
type installFlag struct {
	index    int
	name     string // with its hyphens
	value    string
	hasValue bool
}

func (f installFlag) fail(format string, args ...any) error {
	return &FlagError{Index: f.index, Flag: f.name, Problem: fmt.Sprintf(format, args...)}
}

func (f installFlag) String() string {
	if f.hasValue {
		return f.name + "=" + f.value
	}
	return f.name
}

// flags reads the install flags. One entry is one flag, with its value after "="
// or after a space, or in the next entry; quotes around a value, which a shell
// would have taken off, are taken off.
func (s Spec) flags() ([]installFlag, error) {
	var flags []installFlag
	var errs []error
	for i, text := range s.InstallFlags {
		text = strings.TrimSpace(text)
		if !strings.HasPrefix(text, "-") {
			if n := len(flags) - 1; n >= 0 && !flags[n].hasValue && flags[n].index == i-1 && text != "" {
				flags[n].value, flags[n].hasValue = unquote(text), true
				continue
			}
			errs = append(errs, &FlagError{Index: i, Flag: text, Problem: "it does not begin with a hyphen: want a flag of k0s install, as --profile=name"})
			continue
		}
		f := installFlag{index: i, name: text}
		if at := strings.IndexAny(text, "= \t"); at >= 0 {
			f.name, f.value, f.hasValue = text[:at], unquote(strings.TrimSpace(text[at+1:])), true
		}
		if strings.Trim(f.name, "-") == "" || strings.ContainsAny(f.name, `"'`) {
			errs = append(errs, f.fail("want a flag of k0s install, as --profile=name"))
			continue
		}
		flags = append(flags, f)
	}
	return flags, errors.Join(errs...)
}

func unquote(s string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

// Labels returns the node labels that the install flags declare by --labels, never
// nil. Its errors are [*FlagError]s, joined.
func (s Spec) Labels() (map[string]string, error) {
	flags, err := s.flags()
	labels, bad := labelsOf(flags)
	return labels, errors.Join(err, bad)
}

func labelsOf(flags []installFlag) (map[string]string, error) {
	labels := map[string]string{}
	var errs []error
	for _, f := range flags {
		if f.name != "--labels" {
			continue
		}
		if f.value == "" {
			errs = append(errs, f.fail("it has no value: want key=value, several separated by commas"))
			continue
		}
		for pair := range strings.SplitSeq(f.value, ",") {
			key, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
			if !ok {
				errs = append(errs, f.fail("%q is no label: want key=value, several separated by commas", pair))
				continue
			}
			if why := badLabel(key, value); why != "" {
				errs = append(errs, f.fail("%q is no label: %s", pair, why))
				continue
			}
			if before, twice := labels[key]; twice && before != value {
				errs = append(errs, f.fail("the label %s is declared as %q and as %q", key, before, value))
				continue
			}
			labels[key] = value
		}
	}
	return labels, errors.Join(errs...)
}

// badLabel says what is wrong with a label, or "".
func badLabel(key, value string) string {
	prefix, name, ok := strings.Cut(key, "/")
	if !ok {
		prefix, name = "", key
	}
	if ok && (prefix == "" || len(prefix) > 253 || notSubdomain(prefix)) {
		return fmt.Sprintf("what is before the slash in %q is no DNS name", key)
	}
	if !qualified(name) {
		return fmt.Sprintf("the key %q has to be 1 to 63 letters, digits, \"-\", \"_\" or \".\", with a letter or digit at both ends", name)
	}
	if value != "" && !qualified(value) {
		return fmt.Sprintf("the value %q has to be at most 63 letters, digits, \"-\", \"_\" or \".\", with a letter or digit at both ends", value)
	}
	return ""
}

func notSubdomain(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "."), func(label string) bool {
		return label == "" || len(label) > 63 || label != strings.ToLower(label) || strings.ContainsAny(label, "_.") || !qualified(label)
	})
}

func qualified(s string) bool {
	alnum := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' }
	if len(s) == 0 || len(s) > 63 || !alnum(s[0]) || !alnum(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if !alnum(s[i]) && !strings.ContainsRune("-_.", rune(s[i])) {
			return false
		}
	}
	return true
}

// ownFlags are the flags that the software sets itself or that would make
// something else of an installation, and why a host may not give them.
func ownFlags(r Role) map[string]string {
	own := map[string]string{
		"--data-dir":         "the data directory is that of the cluster: set spec.k8sProviderSpecs.dataDir in MkeConfig",
		"--kubelet-root-dir": "the kubelet's directory is below the data directory of the cluster",
		"--token-file":       "the join token is made for this operation",
		"--force":            "it would write over a service that is there",
		"--start":            "the service is started once everything is in place",
		"--help":             "it would print a text and install nothing",
		"-h":                 "it would print a text and install nothing",
		"--status-socket":    "the service would no longer be found where it is looked for",
	}
	if r == ControllerWorker {
		maps.Copy(own, map[string]string{
			"--config":        "the configuration is made from that of the cluster",
			"-c":              "the configuration is made from that of the cluster",
			"--single":        "it would make a cluster of its own",
			"--init-only":     "the service would end at once",
			"--enable-worker": "it is given always: every controller is a worker too",
		})
	}
	return own
}

// CheckInstallFlags says whether the install flags of a host collide with what
// the software sets itself: the data directory, the join token, the node's name,
// and the node's address if the entry has a private one. It returns every
// collision, joined, each a [*FlagError], and whatever is wrong with the labels.
func CheckInstallFlags(s Spec) error {
	flags, err := s.flags()
	own := ownFlags(s.Role)
	errs := []error{err}
	for _, f := range flags {
		if why := own[f.name]; why != "" {
			errs = append(errs, f.fail("it is set by the software and cannot be given: %s", why))
		}
		if f.name != kubeletExtraArgs {
			continue
		}
		for _, a := range strings.Fields(f.value) {
			switch name, _, _ := strings.Cut(strings.TrimLeft(unquote(a), "-"), "="); {
			case name == "hostname-override":
				errs = append(errs, f.fail("--hostname-override would register the host under another name than its own, and it would not be found again"))
			case name == "root-dir":
				errs = append(errs, f.fail("--root-dir: %s", own["--kubelet-root-dir"]))
			case name == "node-ip" && s.PrivateAddress != "":
				errs = append(errs, f.fail("--node-ip is set already by privateAddress %s: give only one of them", s.PrivateAddress))
			case name == "node-ip" && s.PrivateInterface != "":
				errs = append(errs, f.fail("--node-ip is set already by privateInterface %s: give only one of them", s.PrivateInterface))
			}
		}
	}
	_, err = labelsOf(flags)
	return errors.Join(append(errs, err)...)
}

const kubeletExtraArgs = "--kubelet-extra-args"

// InstallArgs returns the arguments of k0s install after the role: own, those of
// the software, as "--name=value", then the host's. As k0s takes only the last
// --kubelet-extra-args, all of them become one. The errors are those of
// [CheckInstallFlags].
func InstallArgs(s Spec, own ...string) ([]string, error) {
	if err := CheckInstallFlags(s); err != nil {
		return nil, err
	}
	flags, err := s.flags()
	if err != nil {
		return nil, err
	}
	args := slices.Clone(own)
	for _, f := range flags {
		at := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, kubeletExtraArgs+"=") })
		if f.name == kubeletExtraArgs && at >= 0 {
			args[at] += " " + f.value
			continue
		}
		args = append(args, f.String())
	}
	return args, nil
}
