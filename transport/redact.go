package transport

import (
	"slices"
	"strings"
)

// masked is shown instead of a secret.
const masked = "******"

// shortLine is the length below which a line of a secret of several lines is not masked
// on its own: it would be found everywhere.
const shortLine = 8

// A mask hides secrets in what is shown.
type mask struct {
	secrets []string
	longest int
}

// newMask makes a mask for secrets and, since programs complain line by line, for the
// lines of those that have several.
func newMask(secrets []string) mask {
	var m mask
	add := func(s string) {
		if s != "" && !slices.Contains(m.secrets, s) {
			m.secrets = append(m.secrets, s)
			m.longest = max(m.longest, len(s))
		}
	}
	for _, s := range secrets {
		add(s)
		if trimmed := strings.TrimSpace(s); len(trimmed) >= shortLine {
			add(trimmed)
		}
		if !strings.Contains(s, "\n") {
			continue
		}
		for line := range strings.Lines(s) {
			if line = strings.TrimSpace(line); len(line) >= shortLine {
				add(line)
			}
		}
	}
	return m
}

// A span is a stretch of text.
type span struct{ from, to int }

// spans returns the stretches of text that secrets cover, in order; overlapping ones are one.
func (m mask) spans(text string) []span {
	var found []span
	for _, s := range m.secrets {
		for from := 0; ; {
			i := strings.Index(text[from:], s)
			if i < 0 {
				break
			}
			found = append(found, span{from + i, from + i + len(s)})
			from += i + 1
		}
	}
	slices.SortFunc(found, func(a, b span) int { return a.from - b.from })
	var spans []span
	for _, s := range found {
		if n := len(spans); n > 0 && s.from <= spans[n-1].to {
			spans[n-1].to = max(spans[n-1].to, s.to)
			continue
		}
		spans = append(spans, s)
	}
	return spans
}

// apply replaces every stretch of text that secrets cover.
func (m mask) apply(text string) string {
	var b strings.Builder
	end := 0
	for _, s := range m.spans(text) {
		b.WriteString(text[end:s.from])
		b.WriteString(masked)
		end = s.to
	}
	if end == 0 {
		return text
	}
	b.WriteString(text[end:])
	return b.String()
}
