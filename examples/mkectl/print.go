package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/mkesdk/mkesdk/mke"
)

// A printer shows what happens, as it happens.
type printer interface {
	// event shows one event. Events come one at a time.
	event(e mke.Event)
	// above lets f write to the same screen without being drawn over. It may be
	// called at any time.
	above(f func())
	// close ends what is redrawn in place.
	close()
}

// jsonPrinter writes one event a line.
type jsonPrinter struct{ enc *json.Encoder }

func newJSON(w io.Writer) printer { return jsonPrinter{json.NewEncoder(w)} }

func (p jsonPrinter) event(e mke.Event) { _ = p.enc.Encode(e) } // a reader that has gone stops no operation
func (p jsonPrinter) above(f func())    { f() }
func (p jsonPrinter) close()            {}

// plainPrinter writes a line for each event, as a pipe and a log want it.
type plainPrinter struct {
	mu    sync.Mutex
	w     io.Writer
	moved map[string]int64 // host: the quarter of its bytes that was last shown
	since time.Time        // when the stage began
}

func newPlain(w io.Writer) printer { return &plainPrinter{w: w} }

func (p *plainPrinter) close() {}

func (p *plainPrinter) above(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *plainPrinter) event(e mke.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if text, ok := p.text(e); ok {
		fmt.Fprintf(p.w, "%s %s %s\n", e.Time.Format("15:04:05"), position(e), text)
	}
}

// text says what happened, or that it is not worth a line.
func (p *plainPrinter) text(e mke.Event) (string, bool) {
	switch e.Kind {
	case mke.Started:
		p.moved, p.since = map[string]int64{}, e.Time
		if e.Hosts == nil {
			return "started", true
		}
		return "started: " + names(e.Hosts), true
	case mke.Skipped:
		return "skipped: " + e.Message, true
	case mke.Finished:
		return "done in " + elapsed(e), true
	case mke.Failed:
		return fmt.Sprintf("FAILED after %s", elapsed(e)), true // why is said once, at the end
	}
	switch {
	case e.Total > 0:
		return p.bytes(e)
	case e.Warning:
		return "warning: " + about(e), true
	case e.Done > 0 && e.Time.Sub(p.since) < time.Second:
		return "", false // the stage as a whole says so in a moment
	}
	return about(e), true
}

// bytes shows moving bytes at each quarter of the way.
func (p *plainPrinter) bytes(e mke.Event) (string, bool) {
	quarter, who := 4*e.Bytes/e.Total, subject(e)
	if quarter == 0 || quarter <= p.moved[who] {
		return "", false
	}
	p.moved[who] = quarter
	return fmt.Sprintf("%s: %d%% of %s", about(e), 100*e.Bytes/e.Total, size(e.Total)), true
}

// position is where in the operation an event belongs, in columns.
func position(e mke.Event) string { return fmt.Sprintf("%2d/%d %-24s", e.N, e.Of, e.Stage) }

// about is the message of a progress, behind the host that it is about.
func about(e mke.Event) string {
	if e.Host == nil {
		return e.Message
	}
	return e.Host.String() + ": " + e.Message
}

// subject names what a progress is about, "" for the stage as a whole.
func subject(e mke.Event) string {
	if e.Host == nil {
		return ""
	}
	return e.Host.Address
}

func names(hosts []mke.HostRef) string {
	var s []string
	for _, h := range hosts {
		s = append(s, h.String())
	}
	return strings.Join(s, ", ")
}

func size(bytes int64) string {
	if bytes < 10<<20 {
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}

// aboveWriter writes without being drawn over.
type aboveWriter struct {
	p printer
	w io.Writer
}

func (a aboveWriter) Write(data []byte) (n int, err error) {
	a.p.above(func() { n, err = a.w.Write(data) })
	return n, err
}
