package transport

import (
	"bytes"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	tailSize  = 4 << 10  // of standard error that an ExitError keeps
	noiseSize = 16 << 10 // kept of what comes before a command starts
)

// An output takes one stream of a command: it drops what login scripts wrote before the
// mark, hands on what follows, and keeps the tail.
type output struct {
	mark    string
	prompt  string // of sudo; looked for before the mark
	started func() // called once, when the mark has arrived
	asked   func() // called each time the prompt has arrived

	mu    sync.Mutex
	w     io.Writer
	mask  mask
	begun bool
	pre   []byte // what came before the mark, less prompts
	tail  []byte
	cut   bool // the tail does not have everything
	err   error
	last  time.Time // something arrived

	n       atomic.Int64 // bytes that the command wrote
	writing atomic.Bool  // the caller's Write is running, maybe for ever: mu is held
}

// take handles the next bytes. It returns the error of the caller's writer.
func (o *output) take(p []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = time.Now()
	if !o.begun {
		from := max(0, len(o.pre)-max(len(o.mark), len(o.prompt)))
		o.pre = append(o.pre, p...)
		if i := bytes.Index(o.pre[from:], []byte(o.mark)); i >= 0 {
			p = o.pre[from+i+len(o.mark):]
			o.pre = o.pre[:from+i]
			o.begun = true
			o.started()
		} else {
			o.findPrompt(from)
			o.pre = last(o.pre, noiseSize)
			return nil
		}
	}
	o.n.Add(int64(len(p)))
	o.keep(p)
	if o.w == nil || o.err != nil || len(p) == 0 {
		return o.err
	}
	o.writing.Store(true)
	n, err := o.w.Write(p)
	o.writing.Store(false)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	o.err, o.last = err, time.Now()
	return err
}

// findPrompt takes prompts out of what came before the mark.
func (o *output) findPrompt(from int) {
	for o.prompt != "" {
		i := bytes.Index(o.pre[from:], []byte(o.prompt))
		if i < 0 {
			return
		}
		o.pre = append(o.pre[:from+i], o.pre[from+i+len(o.prompt):]...)
		o.asked()
	}
}

// keep adds to the tail, with room for a secret that begins before it.
func (o *output) keep(p []byte) {
	limit := tailSize + o.mask.longest
	o.cut = o.cut || len(o.tail)+len(p) > limit
	o.tail = last(append(o.tail, last(p, limit)...), limit)
}

// shown returns the tail, masked. What the start of the kept text may have of a secret is cut off.
func (o *output) shown() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.show(o.tail, o.cut)
}

// before returns what came before the mark, masked.
func (o *output) before() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.show(last(o.pre, tailSize+o.mask.longest), len(o.pre) >= tailSize+o.mask.longest)
}

func (o *output) show(text []byte, cut bool) string {
	if !cut {
		return o.mask.apply(string(text))
	}
	// A secret that began before the kept text has its rest within the first bytes, which
	// are dropped after masking what is whole.
	drop := min(o.mask.longest, len(text))
	head := o.mask.spans(string(text))
	for _, s := range head {
		if s.from < drop && s.to > drop {
			drop = s.to
		}
	}
	return "…" + o.mask.apply(string(text[drop:]))
}

// hide adds a secret.
func (o *output) hide(secret string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mask = newMask(append(slices.Clone(o.mask.secrets), secret))
}

// asks reports whether what came before the mark ends in a question that has stood for a
// while, and takes it out.
func (o *output) asks(since time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.begun || time.Since(o.last) < since || !bytes.HasSuffix(bytes.TrimRight(o.pre, " "), []byte(":")) {
		return false
	}
	o.pre = nil
	return true
}

// quiet is how long nothing has arrived while we could have taken it.
func (o *output) quiet() time.Duration {
	if o.writing.Load() {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Since(o.last)
}

// detach makes sure that nothing more is written to the caller's writer. It gives up
// after a while if a Write does not return.
func (o *output) detach(patience time.Duration) {
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if o.mu.TryLock() {
			o.w = nil
			o.mu.Unlock()
			return
		}
		if time.Now().After(end) {
			go func() { // whenever the Write returns, it was the last
				o.mu.Lock()
				o.w = nil
				o.mu.Unlock()
			}()
			return
		}
	}
}

// last returns the last n bytes of p.
func last(p []byte, n int) []byte {
	if len(p) > n {
		return p[len(p)-n:]
	}
	return p
}
