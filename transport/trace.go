package transport

import "time"

// A Call is one command that was run, as [Dialer.Trace] sees it once it has ended.
type Call struct {
	Host     string // as Conn.String gives it
	Command  string // as Command.String gives it, secrets masked
	Effect   Effect
	Start    time.Time
	Duration time.Duration
	Status   int   // the exit status; -1 if it is not known, or if a signal ended the command
	Err      error // what Run returned
	In       int64 // bytes sent to the command's standard input
	Out      int64 // bytes received of its standard output and standard error
}
