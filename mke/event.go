package mke

import "time"

// Event is one thing that happened. Its JSON form is stable: fields are added,
// never renamed.
type Event struct {
	Time  time.Time `json:"time"`
	Kind  EventKind `json:"kind"`
	Stage Stage     `json:"stage"`
	// N is the position of the stage in its sequence, from 1, and Of the length
	// of the sequence.
	N  int `json:"n"`
	Of int `json:"of"`
	// Hosts are the hosts that the stage acts on; nil for a stage about the
	// whole cluster, and in Progress.
	Hosts []HostRef `json:"hosts,omitempty"`
	// Host is the one host that a Progress is about, if it is about one.
	Host *HostRef `json:"host,omitempty"`
	// Message is for people: what is done or waited for, or why a stage is
	// skipped.
	Message string `json:"message,omitempty"`
	// Warning marks a Message that should not be overlooked.
	Warning bool `json:"warning,omitempty"`
	// Done is how many of the stage's hosts are done with it; in the Progress that is
	// emitted when one is, and 0 in all others.
	Done int `json:"done,omitempty"`
	// Attempt counts from 1 where something is tried more than once.
	Attempt int `json:"attempt,omitempty"`
	// Deadline is when a wait gives up.
	Deadline *time.Time `json:"deadline,omitempty"`
	// Bytes of Total have moved, where bytes move.
	Bytes int64 `json:"bytes,omitempty"`
	Total int64 `json:"total,omitempty"`
	// ElapsedMS is how long the stage took, in milliseconds; in Finished and
	// Failed only.
	ElapsedMS int64 `json:"elapsedMs,omitempty"`
	// Error is the text of what went wrong, in Failed only.
	Error string `json:"error,omitempty"`
}

// EventKind says what happened.
type EventKind string

// The kinds of events. Each stage gives Skipped alone, or Started, any number of
// Progress, and then Finished or Failed.
const (
	Started  EventKind = "started"  // a stage begins
	Skipped  EventKind = "skipped"  // a stage had nothing to do; Message says why
	Progress EventKind = "progress" // something within a stage
	Finished EventKind = "finished" // a stage ended well
	Failed   EventKind = "failed"   // a stage ended with Error
)
