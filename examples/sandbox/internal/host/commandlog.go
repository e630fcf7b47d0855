package host

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Command is what a host was told over SSH.
type Command struct {
	Time time.Time
	User string
	Line string // as the client sent it; empty for a login without a command
}

// Commands lists what the host was told over SSH since it was made, in order.
func (m *Machine) Commands() ([]Command, error) {
	dir := filepath.Join(m.disk, partCommands)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("host %s: command log: %w", m.cfg.Name, err)
	}
	var out []Command
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("host %s: command log: %w", m.cfg.Name, err)
		}
		if c, ok := parseCommand(e.Name(), string(data)); ok {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b Command) int { return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.Line, b.Line)) })
	return out, nil
}

// parseCommand reads one file of the log: its name begins with the time in nanoseconds, its first
// line is the user, the rest the command.
func parseCommand(name, text string) (Command, bool) {
	stamp, _, _ := strings.Cut(name, ".")
	ns, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return Command{}, false
	}
	user, line, ok := strings.Cut(text, "\n")
	if !ok {
		return Command{}, false // it is being written
	}
	return Command{Time: time.Unix(0, ns), User: user, Line: line}, true
}

// WriteCommand adds to a host's command log, from within the host.
func WriteCommand(c Command, serial int) error {
	name := filepath.Join(CommandDir, fmt.Sprintf("%d.%d-%d", c.Time.UnixNano(), os.Getpid(), serial))
	return os.WriteFile(name, []byte(c.User+"\n"+c.Line), 0o600)
}
