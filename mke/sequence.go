package mke

import (
	"slices"

	"github.com/mkesdk/mkesdk/hosts"
)

// A Stage names a step of an operation. The names are stable.
type Stage string

// The checks that every addition begins with. None changes anything but the
// last.
const (
	Reachability  Stage = "reachability"
	HostState     Stage = "host-state"
	Facts         Stage = "facts"
	Preflight     Stage = "preflight"
	RegistryCheck Stage = "registry"
	ClusterState  Stage = "cluster-state"
	EtcdState     Stage = "etcd-state"
	OperationLock Stage = "operation-lock"
)

// What an addition of workers then does.
const (
	RegistryCA      Stage = "registry-ca"
	K0sBinary       Stage = "k0s-binary"
	SELinuxLabels   Stage = "selinux-labels"
	WorkerBootstrap Stage = "worker-bootstrap"
	ServiceRestart  Stage = "service-restart"
	CloudProvider   Stage = "cloud-provider-reinstall"
	Uncordon        Stage = "uncordon"
	Verification    Stage = "verification"
	NodeLabels      Stage = "node-labels"
	MkeConfigPatch  Stage = "mkeconfig-patch"
)

// sequence returns the steps of an operation for a role, nil if there is no such
// operation. It, and what it is made of, is the only place where order is said.
// The columns: the stage, its kind, the hosts it is for, and what is done.
func sequence(op Operation, role hosts.Role) []step {
	if op == Add && role == hosts.Worker {
		return slices.Concat(addChecks(), addWorkers())
	}
	return nil
}

func addChecks() []step {
	return []step{
		{Reachability, check, all, reach},
		{HostState, check, all, observeHosts},
		{Facts, check, all, checkFacts},
		{Preflight, check, all, preflight},
		{RegistryCheck, check, fresh, verifyRegistry},
		{ClusterState, check, cluster, checkClusterState},
		{EtcdState, check, cluster, checkEtcdState},
		{OperationLock, change, cluster, takeLock},
	}
}

func addWorkers() []step {
	return []step{
		{RegistryCA, change, freshWithCA, each(syncRegistryCA)},
		{K0sBinary, change, fresh, stageK0s},
		{SELinuxLabels, change, freshWithSELinux, each(labelSELinux)},
		{WorkerBootstrap, change, fresh, each(bootstrapWorker)},
		{ServiceRestart, change, toStart, each(restartService)},
		{CloudProvider, change, freshInCloud, each(reinstallForCloud)},
		{Uncordon, change, owedUncordon, each(uncordon)},
		{Verification, wait, all, each(verifyReady)},
		{NodeLabels, change, joinedWithLabels, each(reconcileLabels)},
		{MkeConfigPatch, change, all, patchConfig},
	}
}

// The hosts that a stage can be for.
var (
	cluster          = selector{}
	all              = selector{"in scope", func(*run, *target) bool { return true }}
	fresh            = selector{"to be installed", (*run).fresh}
	freshWithCA      = selector{"to be installed with a registry CA of its own", (*run).freshWithCA}
	freshWithSELinux = selector{"to be installed under SELinux", (*run).freshWithSELinux}
	freshInCloud     = selector{"to be installed for an external cloud provider", (*run).freshInCloud}
	toStart          = selector{"installed without a running, registered worker", (*run).toStart}
	owedUncordon     = selector{"re-using a stale, cordoned node", (*run).owedUncordon}
	joinedWithLabels = selector{"joined in this operation with labels that differ", (*run).joinedWithLabels}
)

func (r *run) fresh(t *target) bool {
	return t.scenario.Action.Fresh()
}
func (r *run) freshWithCA(t *target) bool { return r.fresh(t) && r.config.ImageRegistry.CAData != "" }
func (r *run) freshWithSELinux(t *target) bool {
	return r.fresh(t) && t.facts.SELinuxEnabled()
}
func (r *run) freshInCloud(t *target) bool { return r.fresh(t) && r.config.ExternalCloud }
func (r *run) toStart(t *target) bool {
	return t.scenario.Action == hosts.Restart || t.scenario.Action == hosts.Start
}
func (r *run) owedUncordon(t *target) bool     { return t.owed }
func (r *run) joinedWithLabels(t *target) bool { return t.joined && labelsDiffer(t) }
