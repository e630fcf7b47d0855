package control

import (
	"go.etcd.io/etcd/server/v3/etcdmain"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

// walSegment replaces etcd's 64 MB per write-ahead file, of which it always allocates two: hosts
// of the sandbox keep their data in memory.
const walSegment = 8 << 20

// EtcdMain is the program `etcd`: the real one. args begin with the program's name. It ends the
// process when etcd ends.
func EtcdMain(args []string) {
	wal.SegmentSizeBytes = walSegment
	etcdmain.Main(args)
}
