package hosts

// scenarioIntro and scenarioNotes stand around the generated table in
// docs/scenarios.md.
const scenarioIntro = `<!-- Generated from hosts/matrix.go: go test ./hosts -run TestScenarioDocs -update -->

# What a host may look like beforehand

Before anything acts on a host, one script looks at it and the cluster is asked for its node. The
observations decide which row below the host falls under, and the row decides what is done.
` + "`hosts.Match`" + ` is that decision, a pure function; this page is made from its table.

"Any" means that the observation is not looked at in this row, so it may also be unknown. Whatever
else is unknown puts a host in row 14: nothing unknown ever lets an operation proceed. Ready and same
machine are looked at only where a node is registered. The rows exclude each other: a test walks all
combinations.

| # | scenario | binary | service | installed for | answers | CA | leftovers | registered | ready | same machine | add | remove |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
`

const scenarioNotes = `
## What the observations mean

- **binary**: the file is where the service has it (else ` + "`/usr/local/bin/k0s`" + `), and ` + "`k0s version`" + ` runs.
  A file that does not run, such as half of one, is no binary; one that does not come back in time is unknown.
- **service**: ` + "`k0scontroller`" + ` or ` + "`k0sworker`" + `, a systemd unit or an OpenRC script. A unit that systemd is
  starting, or will start again, is active; one that is stopping, masked or broken is unknown, and so are
  both services at once.
- **answers**: ` + "`k0s status -o json`" + ` answered within its time-out. Not answering is "no". If what answers
  has another role than the service, the role it was installed for is unknown.
- **CA**: the fingerprint of ` + "`<data-dir>/pki/ca.crt`" + ` and of the CA in ` + "`<data-dir>/kubelet.conf`" + `. Where neither is
  there *and a service is installed*, that of the CA in the join token. A token on a host without a
  service says nothing: ` + "`k0s reset`" + ` leaves it, and an addition that was interrupted has written it before it
  installed the service. Two CAs that differ are another cluster's.
- **leftovers**: anything in the data directory but ` + "`images/`" + ` (which may be put there beforehand) and ` + "`lost+found`" + `,
  in the kubelet's root directory, in ` + "`/run/k0s`" + `, or mounted below them. CNI configuration is reported but does not
  count, because ` + "`k0s reset`" + ` leaves it. Looked at only where no service is installed.
- **same machine**: the node has the host's machine-id, and its boot id or one of its addresses. The same
  machine-id alone is unknown (a clone has it too). Another machine-id at one of the host's addresses is the
  same machine only if the node is not Ready: it was imaged anew. Anything else is another machine.

## Where the matrix left something open

The stricter reading was taken:

- Rows 2 to 5, 8 to 10, 12 and 15 are about this machine's own node; if another machine holds the node
  name, it is row 16, in whatever state the host is.
- Row 5 does not answer. A service that is stopped and yet answers is row 14, as is k0s running without a service.
- Row 6 is only for the role of the operation. A service of the other role whose CA has not arrived may be
  somebody's new cluster, so it is row 14.
- No CA but an installed service and a registered node is row 14.
- Rows 9 and 10 are hosts with nothing on them; with leftovers and a registered node it is row 14.
- Row 15 acts on removal only if the CA and the node are known.
- A controller is not installed where a database or a CA of an earlier etcd is left, or could not be looked
  for, whatever the row says: old data never joins under a new member id, and an old etcd CA is kept and ruins
  the join after the membership was changed. A worker is: the reset takes it away.
`
