package k0s

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// logHandler writes log lines in the form k0s has them: time, level and message, then the
// attributes sorted by name, each value quoted if it needs to be.
type logHandler struct {
	mu    *sync.Mutex
	w     io.Writer
	level slog.Level
	attrs []slog.Attr
}

func newLogger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(&logHandler{mu: new(sync.Mutex), w: w, level: level})
}

// Enabled implements slog.Handler.
func (h *logHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

// WithAttrs implements slog.Handler.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	c.attrs = append(slices.Clone(h.attrs), attrs...)
	return &c
}

// WithGroup implements slog.Handler; groups do not show.
func (h *logHandler) WithGroup(string) slog.Handler { return h }

// Handle implements slog.Handler.
func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	attrs := slices.Clone(h.attrs)
	r.Attrs(func(a slog.Attr) bool { attrs = append(attrs, a); return true })
	slices.SortStableFunc(attrs, func(a, b slog.Attr) int { return strings.Compare(a.Key, b.Key) })
	var b strings.Builder
	fmt.Fprintf(&b, "time=%q level=%s msg=%s", r.Time.UTC().Format("2006-01-02 15:04:05"), levelName(r.Level), quote(r.Message))
	for _, a := range attrs {
		fmt.Fprintf(&b, " %s=%s", a.Key, quote(a.Value.String()))
	}
	b.WriteByte('\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.w, b.String())
	return err
}

func levelName(l slog.Level) string {
	if l == slog.LevelWarn {
		return "warning"
	}
	return strings.ToLower(l.String())
}

func quote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._/@^+", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return fmt.Sprintf("%q", s)
}
