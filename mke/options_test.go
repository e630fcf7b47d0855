package mke

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mkesdk/mkesdk/etcdverify"
	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/registry"
	"github.com/mkesdk/mkesdk/transport"
)

func worker(address string, flags ...string) hosts.Spec {
	return hosts.Spec{Role: hosts.Worker, SSH: hosts.SSH{Address: address}, InstallFlags: flags}
}

// TestDefaults: zero is the documented default.
func TestDefaults(t *testing.T) {
	o := Options{}.withDefaults()
	for _, tt := range []struct {
		name      string
		got, want any
	}{
		{"role", o.Role, hosts.Worker},
		{"facts timeout", o.Timeouts.Facts, 5 * time.Minute},
		{"readiness timeout", o.Timeouts.Readiness, 10 * time.Minute},
		{"lease TTL", o.Lease.TTL, time.Minute},
		{"lease renewal", o.Lease.Renew, 20 * time.Second},
		{"adopt stale", o.Lease.AdoptStale, false},
		{"concurrency", o.Concurrency, 30},
		{"MKE version", o.MKEVersion, "4.2.1"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s is %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}

// TestValidate: everything wrong at once, each with its place, and never dialed.
func TestValidate(t *testing.T) {
	good := Options{Cluster: &Cluster{}, Hosts: []hosts.Spec{worker("10.0.0.1")}}
	if err := good.withDefaults().validate(Add); err != nil {
		t.Errorf("good options: %v", err)
	}
	for name, tt := range map[string]struct {
		change func(*Options)
		want   []string
	}{
		"no cluster":       {func(o *Options) { o.Cluster = nil }, []string{"Options.Cluster is nil"}},
		"no hosts":         {func(o *Options) { o.Hosts = nil }, []string{`none of the 0 hosts has role "worker"`}},
		"no host in scope": {func(o *Options) { o.Hosts[0].Role = hosts.ControllerWorker }, []string{`none of the 1 hosts has role "worker"`}},
		"other role":       {func(o *Options) { o.Role = hosts.ControllerWorker }, []string{`Options.Role "controller+worker": this version can only`}},
		"unknown role":     {func(o *Options) { o.Role = "master" }, []string{`Options.Role "master"`}},
		"renewed too late": {func(o *Options) { o.Lease.Renew = time.Minute }, []string{"not shorter than Lease.TTL 1m0s"}},
		"negative times": {
			func(o *Options) { o.Timeouts.Facts, o.Timeouts.Readiness = -1, -time.Second },
			[]string{"Timeouts.Facts is -1ns", "Timeouts.Readiness is -1s"},
		},
		"a check that can't be skipped": {func(o *Options) { o.SkipPreflight = []string{"cgroup-v2"} }, []string{"SkipPreflight", "cgroup-v2"}},
		"one address in two spellings": {
			func(o *Options) { o.Hosts = []hosts.Spec{worker("FD00:0::1"), worker("10.0.0.2"), worker("[fd00::1]")} },
			[]string{"hosts 1 and 3 are one host"},
		},
		"no address": {func(o *Options) { o.Hosts[0].SSH.Address = "" }, []string{"host 1 has no address"}},
		"bad label":  {func(o *Options) { o.Hosts[0].InstallFlags = []string{"--labels=a b=c"} }, []string{"host 1 (10.0.0.1)", "--labels"}},
		"several": {
			func(o *Options) { o.Cluster, o.Hosts, o.Lease.TTL = nil, nil, time.Second },
			[]string{"Cluster", "none of the 0 hosts", "Lease.Renew"},
		},
	} {
		o := good
		o.Hosts = []hosts.Spec{worker("10.0.0.1")}
		tt.change(&o)
		err := o.withDefaults().validate(Add)
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		if Retryable(err) {
			t.Errorf("%s: retryable", name)
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in: %v", name, want, err)
			}
		}
	}
}

// TestRetryable tells apart what a second try can mend.
func TestRetryable(t *testing.T) {
	plain := errors.New("connection refused")
	at := func(err error) error { return &StageError{Operation: Add, Stage: Facts, Err: err} }
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"none":                  {nil, false},
		"plain":                 {plain, true},
		"in a stage":            {at(plain), true},
		"locked":                {at(&LockedError{}), true},
		"lost lock":             {ErrLockLost, true},
		"changed":               {at(&ChangedError{}), true},
		"timeout":               {at(ErrTimeout), true},
		"stopped":               {ErrStopped, true},
		"not stable":            {at(ErrNotStable), true},
		"no helper":             {at(ErrNoHelper), true},
		"invalid":               {at(ErrInvalid), false},
		"other cluster":         {at(ErrOtherCluster), false},
		"version":               {at(ErrVersion), false},
		"refused host":          {at(&HostError{}), false},
		"pre-flight":            {at(&PreflightError{}), false},
		"etcd":                  {at(&etcdverify.Error{}), false},
		"hosts file":            {fmt.Errorf("reading: %w", &hosts.FileError{}), false},
		"local file":            {at(&fs.PathError{Op: "open", Path: "key", Err: syscall.ENOENT}), false},
		"file of a host":        {at(&fs.PathError{Op: "open", Path: "key", Err: fs.ErrNotExist}), true},
		"unauthorized":          {at(apierrors.NewUnauthorized("no")), false},
		"host key":              {at(fmt.Errorf("h1: %w", &transport.HostKeyError{})), false},
		"credentials":           {at(transport.ErrAuth), false},
		"sudo password":         {at(transport.ErrSudoPassword), false},
		"lost connection":       {at(transport.ErrConnectionLost), true},
		"command failed":        {at(&transport.ExitError{}), true},
		"missing artifact":      {at(&registry.MissingError{}), false},
		"registry wants login":  {at(&registry.AuthError{}), false},
		"registry is busy":      {at(&registry.RateLimitError{}), true},
		"one of several is not": {errors.Join(at(plain), at(fmt.Errorf("h2: %w", &HostError{}))), false},
		"all of several are":    {errors.Join(at(plain), at(ErrTimeout)), true},
	} {
		if got := Retryable(tt.err); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

// TestLabelChange puts what is declared, takes away what was ours and is not
// declared any more, and leaves all other labels alone.
func TestLabelChange(t *testing.T) {
	v := func(s string) *string { return &s }
	for name, tt := range map[string]struct {
		declared, have map[string]string
		owned          string
		want           map[string]*string
		differ         bool
	}{
		"nothing":        {nil, map[string]string{"os": "linux"}, "", nil, false},
		"new":            {map[string]string{"zone": "a"}, nil, "", map[string]*string{"zone": v("a")}, true},
		"the same":       {map[string]string{"zone": "a"}, map[string]string{"zone": "a"}, "zone", nil, false},
		"not yet ours":   {map[string]string{"zone": "a"}, map[string]string{"zone": "a"}, "", nil, true},
		"another value":  {map[string]string{"zone": "b"}, map[string]string{"zone": "a"}, "zone", map[string]*string{"zone": v("b")}, true},
		"empty value":    {map[string]string{"zone": ""}, nil, "zone", map[string]*string{"zone": v("")}, true},
		"no longer ours": {map[string]string{"b": "1"}, map[string]string{"a": "1", "b": "1"}, "a,b", map[string]*string{"a": nil}, true},
	} {
		node := &Node{Labels: tt.have, Annotations: map[string]string{}}
		if tt.owned != "" {
			node.Annotations[managedLabels] = tt.owned
		}
		target := &target{labels: tt.declared, node: node}
		got := labelChange(target)
		if len(got) != len(tt.want) {
			t.Errorf("%s: %v", name, got)
		}
		for k, want := range tt.want {
			have, ok := got[k]
			if !ok || (have == nil) != (want == nil) || have != nil && *have != *want {
				t.Errorf("%s: label %s: %v", name, k, have)
			}
		}
		if differ := labelsDiffer(target); differ != tt.differ {
			t.Errorf("%s: differ is %t", name, differ)
		}
	}
}
