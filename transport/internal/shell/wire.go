package shell

import (
	"fmt"
	"strconv"
	"strings"
)

// A Request is one command as it goes over the wire.
type Request struct {
	Args   []string // the program, then its arguments; without NUL bytes
	Sudo   bool     // become root unless root already
	Prompt string   // what sudo asks a password with, on standard error; if empty, sudo must not ask
	Mark   string   // written to both outputs right before the program starts; of letters, digits and dashes
}

// The pieces a request is written with. Messages are to be in English because some of
// them are read.
const (
	locale   = "LC_ALL=C;export LC_ALL;"
	asRoot   = `;if [ "$(id -u)" = 0 ];then `
	elseSudo = `;fi;exec sudo `
	program  = `exec "$@"`
)

// mark is the script that writes m to both outputs.
func mark(m string) string {
	return "printf %s " + m + ";printf %s " + m + " >&2;"
}

// Wire writes r for the login shell. The login shell and /bin/sh replace themselves, so
// that nothing of them runs after the program and a signal that ends the program is
// reported as one.
func Wire(r Request) string {
	if !r.Sudo {
		return enclose(locale + mark(r.Mark) + "exec " + Join(r.Args))
	}
	ask := "-n"
	if r.Prompt != "" {
		ask = "-S -p " + Quote(r.Prompt)
	}
	return enclose(locale + "set -- " + Join(r.Args) + asRoot + mark(r.Mark) + program + elseSudo + ask +
		" -- /bin/sh -c " + Quote(mark(r.Mark)+program) + ` sh "$@"`)
}

// The two ways to hand a script to /bin/sh: as it is, or in pieces that printf puts
// together. A piece is a word of at most pieceSize bytes, because csh refuses long ones.
const (
	plainHead   = "exec /bin/sh -c '"
	encodedHead = `exec /bin/sh -c 'eval "$(printf %b "$@")"' sh '`
	between     = "' '"
	tail        = "'"

	pieceSize = 4000
)

// enclose makes every login shell pass script to /bin/sh.
func enclose(script string) string {
	plain := len(script) <= pieceSize
	for i := range len(script) {
		plain = plain && isPlain(script[i])
	}
	if plain {
		return plainHead + script + tail
	}
	var b strings.Builder
	b.WriteString(encodedHead)
	piece := 0
	for i := range len(script) {
		c := string(script[i : i+1])
		if !isPlain(c[0]) {
			c = fmt.Sprintf(`\0%03o`, c[0])
		}
		if piece += len(c); piece > pieceSize {
			b.WriteString(between)
			piece = len(c)
		}
		b.WriteString(c)
	}
	b.WriteString(tail)
	return b.String()
}

// isPlain reports whether all login shells leave b alone between single quotes.
func isPlain(b byte) bool {
	return b >= ' ' && b <= '~' && b != '\'' && b != '\\' && b != '!'
}

// disclose undoes enclose.
func disclose(wire string) (script string, ok bool) {
	wire, ok = strings.CutSuffix(wire, tail)
	if !ok {
		return "", false
	}
	s, encoded := strings.CutPrefix(wire, encodedHead)
	if !encoded {
		return strings.CutPrefix(wire, plainHead)
	}
	s = strings.ReplaceAll(s, between, "")
	var b strings.Builder
	for len(s) > 0 {
		if s[0] != '\\' {
			b.WriteByte(s[0])
			s = s[1:]
			continue
		}
		if len(s) < 5 || s[1] != '0' {
			return "", false
		}
		n, err := strconv.ParseUint(s[2:5], 8, 8)
		if err != nil {
			return "", false
		}
		b.WriteByte(byte(n))
		s = s[5:]
	}
	return b.String(), true
}

// Parse undoes Wire, and reports whether wire is what Wire writes.
func Parse(wire string) (Request, bool) {
	script, ok := disclose(wire)
	if !ok {
		return Request{}, false
	}
	r, ok := parse(script)
	return r, ok && Wire(r) == wire
}

func parse(script string) (r Request, ok bool) {
	s, ok := strings.CutPrefix(script, locale)
	if !ok {
		return r, false
	}
	if s, ok := strings.CutPrefix(s, "set -- "); ok {
		i := strings.LastIndex(s, asRoot)
		if i < 0 {
			return r, false
		}
		words, err := Split(s[:i])
		if err != nil {
			return r, false
		}
		r.Args, r.Sudo = words, true
		rest, ok := strings.CutPrefix(s[i+len(asRoot):], "printf %s ")
		if !ok {
			return r, false
		}
		if r.Mark, rest, ok = strings.Cut(rest, ";"); !ok {
			return r, false
		}
		_, rest, _ = strings.Cut(rest, elseSudo)
		if rest, ok = strings.CutPrefix(rest, "-S -p "); ok {
			prompt, _, _ := strings.Cut(rest, " -- ")
			words, err := Split(prompt)
			if err != nil || len(words) != 1 {
				return r, false
			}
			r.Prompt = words[0]
		}
		return r, true
	}
	s, ok = strings.CutPrefix(s, "printf %s ")
	if !ok {
		return r, false
	}
	if r.Mark, s, ok = strings.Cut(s, ";"); !ok {
		return r, false
	}
	if _, s, ok = strings.Cut(s, ";exec "); !ok {
		return r, false
	}
	words, err := Split(s)
	r.Args = words
	return r, err == nil
}
