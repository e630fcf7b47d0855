// Package shell writes commands so that a host's login shell, whichever it is, hands them
// on unchanged.
//
// A command travels as one string that the login shell of the user reads. POSIX shells,
// fish, csh and nu agree on little, but they do agree on a single-quoted string that has
// no quote, no exclamation mark, no line break and no backslash in front of anything but
// a digit. [Wire] writes such a string and lets /bin/sh take it from there; [Parse] is
// its inverse, for servers and fakes.
package shell

import (
	"errors"
	"fmt"
	"strings"
)

// MaxWire is the longest command in bytes that Linux passes to a program as one argument,
// less a little.
const MaxWire = 128<<10 - 64

// Quote writes s as one word of a POSIX shell.
func Quote(s string) string {
	switch {
	case s == "":
		return `""`
	case strings.Trim(s, wordBytes) == "":
		return s
	case !strings.ContainsAny(s, "$`\"\\!"):
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// wordBytes need no quotes in any shell.
const wordBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+:,./-"

// Join writes args as one command line of a POSIX shell.
func Join(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = Quote(a)
	}
	return strings.Join(words, " ")
}

// Split undoes Join. It knows quotes and backslashes only: whatever else a shell would act on is an error.
func Split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	in := false
	end := func() {
		if in {
			words = append(words, word.String())
			word.Reset()
			in = false
		}
	}
	for i := 0; i < len(line); i++ {
		switch b := line[i]; {
		case b == ' ':
			end()
		case b == '\'':
			n := strings.IndexByte(line[i+1:], '\'')
			if n < 0 {
				return nil, errors.New("shell: a single quote is not closed")
			}
			word.WriteString(line[i+1 : i+1+n])
			in, i = true, i+1+n
		case b == '"':
			n := strings.IndexAny(line[i+1:], "\"$`\\")
			if n < 0 || line[i+1+n] != '"' {
				return nil, errors.New("shell: a double quote is not closed, or the shell would expand what is in it")
			}
			word.WriteString(line[i+1 : i+1+n])
			in, i = true, i+1+n
		case b == '\\':
			i++
			if i == len(line) {
				return nil, errors.New("shell: nothing follows the last backslash")
			}
			word.WriteByte(line[i])
			in = true
		case strings.IndexByte(wordBytes, b) >= 0:
			word.WriteByte(b)
			in = true
		default:
			return nil, fmt.Errorf("shell: %q is not quoted", b)
		}
	}
	end()
	return words, nil
}
