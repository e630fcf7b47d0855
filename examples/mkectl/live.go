package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/mkesdk/mkesdk/mke"
)

// livePrinter shows one line a stage on a terminal. The line of the stage that
// runs is redrawn in place.
type livePrinter struct {
	mu    sync.Mutex
	w     io.Writer
	width func() int
	color bool
	drawn bool // a line stands there that is to be drawn over
	stop  chan struct{}

	stage mke.Event           // Started of the stage that runs; Kind is empty if none does
	note  string              // last said of the stage as a whole
	last  string              // last said of anything
	done  map[string]bool     // hosts that are done
	moved map[string][2]int64 // host: bytes moved, of how many
	now   func() time.Time    // the clock
}

// newLive returns a printer for a terminal of that width; it redraws once a
// second until it is closed, so that a wait can be seen to go on.
func newLive(w io.Writer, width func() int, color bool) printer {
	p := &livePrinter{w: w, width: width, color: color, now: time.Now, stop: make(chan struct{})}
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-p.stop:
				return
			case <-tick.C:
				p.above(func() {})
			}
		}
	}()
	return p
}

func (p *livePrinter) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.stop)
	p.erase()
	p.stage = mke.Event{}
}

func (p *livePrinter) above(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	f()
	p.draw()
}

func (p *livePrinter) event(e mke.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	switch e.Kind {
	case mke.Started:
		p.stage, p.note, p.last = e, "", ""
		p.done, p.moved = map[string]bool{}, map[string][2]int64{}
	case mke.Skipped:
		p.keep(dim, "-", e, e.Message)
	case mke.Progress:
		p.progress(e)
	case mke.Finished, mke.Failed:
		parts := []string{p.who(e.Kind == mke.Finished), elapsed(e)}
		if e.Kind == mke.Finished {
			parts = append(parts, p.note)
			// What was noted is cut rather than wrapped; a pipe and -o json have it whole.
			room := p.width() - 1 - len("ok   "+position(e)+" ")
			p.keep(green, "ok", e, clip(strings.Join(parts, "  "), max(room, 1)))
		} else {
			p.keep(red, "FAIL", e, strings.Join(parts, "  ")) // the error itself is reported at the end, whole
		}
		p.stage = mke.Event{}
	}
	p.draw()
}

func (p *livePrinter) progress(e mke.Event) {
	switch {
	case e.Done > 0:
		p.done[subject(e)] = true
	case e.Warning:
		p.keep(yellow, "warn", e, about(e))
	case e.Total > 0:
		delete(p.moved, "") // what was fetched for all is there once the first has some of it
		p.moved[subject(e)] = [2]int64{e.Bytes, e.Total}
	default:
		p.last = about(e)
		if e.Host == nil {
			p.note = e.Message
		}
	}
}

// keep writes a line that stays.
func (p *livePrinter) keep(c colour, mark string, e mke.Event, text string) {
	mark = fmt.Sprintf("%-4s", mark)
	if p.color {
		mark = string(c) + mark + string(reset)
	}
	fmt.Fprintf(p.w, "%s %s %s\n", mark, position(e), strings.TrimSpace(text))
}

// draw writes the line of the stage that runs.
func (p *livePrinter) draw() {
	if p.stage.Kind == "" {
		return
	}
	running := max(0, p.now().Sub(p.stage.Time)).Truncate(time.Second).String()
	parts := []string{p.who(false), running, p.last}
	if bar := p.bar(); bar != "" {
		parts = []string{p.who(false), bar, running}
	}
	line := fmt.Sprintf("..   %s %s", position(p.stage), strings.TrimSpace(strings.Join(parts, "  ")))
	fmt.Fprint(p.w, clip(line, p.width()-1))
	p.drawn = true
}

func (p *livePrinter) erase() {
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.drawn = false
	}
}

// who says how many hosts are done, of how many; of a stage about the cluster it
// says that.
func (p *livePrinter) who(all bool) string {
	n := len(p.stage.Hosts)
	switch {
	case n == 0:
		return fmt.Sprintf("%-10s", "cluster")
	case all:
		return fmt.Sprintf("%-10s", count(n, "host"))
	}
	return fmt.Sprintf("%-10s", fmt.Sprintf("%d/%s", len(p.done), count(n, "host")))
}

// bar shows the bytes that all hosts together have received, of what they will
// receive: a host of which nothing is known yet will take as much as another.
func (p *livePrinter) bar() string {
	if len(p.moved) == 0 {
		return ""
	}
	var moved, total, largest int64
	for _, m := range p.moved {
		moved, total, largest = moved+m[0], total+m[1], max(largest, m[1])
	}
	for _, h := range p.stage.Hosts {
		_, known := p.moved[h.Address]
		_, forAll := p.moved[""]
		if !known && !forAll && !p.done[h.Address] {
			total += largest
		}
	}
	const cells = 20
	full := int(cells * moved / total)
	return fmt.Sprintf("[%s%s] %3d%% of %s", strings.Repeat("#", full), strings.Repeat(".", cells-full), 100*moved/total, size(total))
}

// A colour is the escape sequence that begins it.
type colour string

const (
	reset  colour = "\x1b[0m"
	dim    colour = "\x1b[2m"
	red    colour = "\x1b[31m"
	green  colour = "\x1b[32m"
	yellow colour = "\x1b[33m"
)

// clip shortens a line to that many characters, and to its first line.
func clip(line string, most int) string {
	line, _, _ = strings.Cut(line, "\n")
	if most < 1 || utf8.RuneCountInString(line) <= most {
		return line
	}
	return string([]rune(line)[:most])
}

func elapsed(e mke.Event) string { return short(time.Duration(e.ElapsedMS) * time.Millisecond) }
