package transport

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mkesdk/mkesdk/transport/internal/shell"
)

// longArg is how many bytes of an argument are shown before it is shortened.
const longArg = 160

// scriptName begins the first line of a script that wants to be shown by a name.
const scriptName = "# mkesdk: "

// String shows the command as one would type it, secrets masked. A script, that is an
// argument of several lines, is shown by its first line and its size, or by its name if
// the first line is "# mkesdk: name"; a long argument is shortened alike.
func (c Command) String() string {
	m := newMask(c.Secrets)
	words := make([]string, 0, len(c.Args)+1)
	if c.Sudo {
		words = append(words, "sudo")
	}
	for _, a := range c.Args {
		words = append(words, showArg(m.apply(a), len(a)))
	}
	return m.apply(strings.Join(words, " "))
}

// showArg writes one argument, masked already, that is size bytes long.
func showArg(arg string, size int) string {
	first, rest, many := strings.Cut(arg, "\n")
	if name, ok := strings.CutPrefix(first, scriptName); ok && rest != "" && len(name) < longArg {
		return fmt.Sprintf("<%s, %d bytes>", strings.TrimSpace(name), size)
	}
	if arg == masked {
		return arg
	}
	if !many && len(arg) <= longArg {
		return shell.Quote(arg)
	}
	if len(first) > longArg/2 {
		first = strings.ToValidUTF8(first[:longArg/2], "")
	}
	return fmt.Sprintf("%s…<%d bytes>", shell.Quote(first), size)
}

// check says what is wrong with the command before a host sees it.
func (c Command) check() error {
	if len(c.Args) == 0 || c.Args[0] == "" {
		return errors.New("the command names no program")
	}
	if i := slices.IndexFunc(c.Args, func(a string) bool { return strings.ContainsRune(a, 0) }); i >= 0 {
		return fmt.Errorf("argument %d has a NUL byte, which no program can be given", i)
	}
	return nil
}
