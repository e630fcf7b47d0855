package mke

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mkesdk/mkesdk/hosts"
)

// Options say what to operate on and within which bounds. Hosts and Cluster are
// required; the zero value of every other field is the documented default.
type Options struct {
	// Cluster is the running cluster; see [Connect].
	Cluster *Cluster
	// Hosts are as in hosts.yaml; those of another role are left alone.
	Hosts []hosts.Spec
	// Role is the role to operate on: hosts.Worker if empty.
	Role hosts.Role

	Timeouts Timeouts
	Lease    Lease

	// Concurrency is the most hosts that a stage works on at once: 30 if zero,
	// without bound if negative.
	Concurrency int
	// SkipPreflight names pre-flight checks that are switched off. Only those
	// that the documentation allows can be: "os", "storage", "cpu", "memory".
	SkipPreflight []string
	// Bounds are what pre-flight checks demand; a zero field is the default of
	// hosts.DefaultBounds.
	Bounds hosts.Bounds
	// MKEVersion is the version that the cluster must have; SupportedMKE if
	// empty.
	MKEVersion string
	// TempDir is where what is staged onto several hosts is kept meanwhile, in
	// a file of mode 0600; os.TempDir if empty.
	TempDir string

	// Stop, when closed, ends the operation at the next safe point with
	// [ErrStopped]: waits end at once, what is being done to a host is
	// finished, nothing else begins, and the lock is given back. To end it at once, cancel
	// the context.
	Stop <-chan struct{}
	// OnEvent, if set, is told what happens as it happens: from one goroutine
	// at a time, in order. The operation waits for it to return.
	OnEvent func(Event)
	// Logger takes detail meant for the people who maintain the caller, never a
	// secret. Nothing is logged if it is nil.
	Logger *slog.Logger
}

// Timeouts bound the waits. A zero field takes the default; a negative one is
// refused. The operation as a whole is bounded by its context.
type Timeouts struct {
	Facts     time.Duration // gathering the facts of all hosts: 5 minutes
	Readiness time.Duration // until every node is Ready: 10 minutes
}

// Lease bounds the operation lock, which is renewed while the operation runs.
type Lease struct {
	TTL   time.Duration // 1 minute if zero
	Renew time.Duration // 20 seconds if zero; must be shorter than TTL
	// AdoptStale takes over a lease that its holder let lapse, if it is of the
	// same operation, scope and hosts.
	AdoptStale bool
}

// withDefaults returns o with every zero field replaced by its default.
func (o Options) withDefaults() Options {
	setDefault(&o.Role, hosts.Worker)
	setDefault(&o.Timeouts.Facts, 5*time.Minute)
	setDefault(&o.Timeouts.Readiness, 10*time.Minute)
	setDefault(&o.Lease.TTL, time.Minute)
	setDefault(&o.Lease.Renew, 20*time.Second)
	setDefault(&o.Concurrency, 30)
	setDefault(&o.MKEVersion, SupportedMKE)
	if o.OnEvent == nil {
		o.OnEvent = func(Event) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// validate says everything that is wrong with o, with defaults applied. Its
// errors match ErrInvalid.
func (o Options) validate(op Operation) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.Cluster == nil {
		bad("Options.Cluster is nil: want what mke.Connect returns")
	}
	if sequence(op, o.Role) == nil {
		bad("Options.Role %q: this version can only %s hosts of role %q", o.Role, op, hosts.Worker)
	}
	for name, d := range map[string]time.Duration{
		"Timeouts.Facts": o.Timeouts.Facts, "Timeouts.Readiness": o.Timeouts.Readiness,
		"Lease.TTL": o.Lease.TTL, "Lease.Renew": o.Lease.Renew,
	} {
		if d < 0 {
			bad("Options.%s is %s: want a positive duration, or 0 for the default", name, d)
		}
	}
	if o.Lease.Renew >= o.Lease.TTL {
		bad("Options.Lease.Renew %s is not shorter than Lease.TTL %s: the lock would expire before it is renewed", o.Lease.Renew, o.Lease.TTL)
	}
	if err := hosts.ValidateSkips(o.SkipPreflight...); err != nil {
		bad("Options.SkipPreflight: %w", err)
	}
	if err := validateHosts(o.Hosts, o.Role); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

// validateHosts says what is wrong with the list of hosts itself: none of the
// role, or one address twice.
func validateHosts(specs []hosts.Spec, role hosts.Role) error {
	var errs []error
	inScope := 0
	seen := map[string]int{}
	for i, s := range specs {
		if s.Role == role {
			inScope++
		}
		if s.SSH.Address == "" {
			errs = append(errs, fmt.Errorf("host %d has no address", i+1))
			continue
		}
		if _, err := s.Labels(); err != nil {
			errs = append(errs, fmt.Errorf("host %d (%s): %w", i+1, s.SSH.Address, err))
		}
		key := addressKey(s.SSH.Address)
		if first, ok := seen[key]; ok {
			errs = append(errs, fmt.Errorf("hosts %d and %d are one host: both have the address %s", first, i+1, s.SSH.Address))
			continue
		}
		seen[key] = i + 1
	}
	if inScope == 0 {
		errs = append(errs, fmt.Errorf("none of the %d hosts has role %q", len(specs), role))
	}
	return errors.Join(errs...)
}
