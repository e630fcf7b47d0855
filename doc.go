// Package mkesdk is documentation only: it is the front page of the module.
//
// The packages, from the ground up:
//
//	transport   one SSH connection, direct or through bastions
//	hosts       what a host is: its facts, its state, its pre-flight checks
//	etcdverify  what the etcd of a cluster is: findings with a runbook topic
//	registry    whether a registry holds what an operation will pull
//	mke         the operations: AddNodes
package mkesdk
