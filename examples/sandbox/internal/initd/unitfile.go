package initd

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A unit is a service as its file describes it. Only what the sandbox's services use is read;
// other keys are let pass, as systemd itself warns and goes on.
type unit struct {
	name        string
	fragment    string // the file it came from; empty for one that is built in
	description string
	kind        string // Type=
	start       [][]string
	environment []string
	envFiles    []string // a leading "-" makes one optional
	dir         string
	restart     string // Restart=
	restartWait time.Duration
	stopTimeout time.Duration // 0 waits for ever
	killMode    string
	remain      bool // RemainAfterExit=
	limitEvery  time.Duration
	limitBurst  int
	wantedBy    []string
}

// parseUnit reads a unit file. Defaults are systemd's own.
func parseUnit(name, text string) (unit, error) {
	u := unit{
		name: name, kind: "simple", restart: "no", killMode: "control-group",
		restartWait: 100 * time.Millisecond, stopTimeout: 90 * time.Second,
		limitEvery: 10 * time.Second, limitBurst: 5,
	}
	section := ""
	for n, line := range logicalLines(text) {
		if line == "" {
			continue
		}
		if strings.HasPrefix(line, "[") {
			if !strings.HasSuffix(line, "]") {
				return unit{}, fmt.Errorf("%s:%d: section %q has no closing bracket", name, n+1, line)
			}
			section = line[1 : len(line)-1]
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return unit{}, fmt.Errorf("%s:%d: %q is neither a section nor key=value", name, n+1, line)
		}
		if err := u.set(section, strings.TrimSpace(key), strings.TrimSpace(value)); err != nil {
			return unit{}, fmt.Errorf("%s:%d: %w", name, n+1, err)
		}
	}
	if len(u.start) == 0 {
		return unit{}, fmt.Errorf("%s: [Service] has no ExecStart=", name)
	}
	return u, nil
}

// logicalLines joins continued lines and blanks comments; an index is still a line of the file.
func logicalLines(text string) []string {
	lines := strings.Split(text, "\n")
	out := make([]string, len(lines))
	at, open := 0, false
	for i, line := range lines {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			continue
		}
		if !open {
			at = i
		}
		body, more := strings.CutSuffix(line, "\\")
		if open {
			out[at] += " "
		}
		out[at] += strings.TrimSpace(body)
		open = more
	}
	return out
}

func (u *unit) set(section, key, value string) (err error) {
	switch section + "." + key {
	case "Unit.Description":
		u.description = value
	case "Unit.StartLimitIntervalSec", "Unit.StartLimitInterval", "Service.StartLimitInterval":
		u.limitEvery, err = parseSpan(value)
	case "Unit.StartLimitBurst", "Service.StartLimitBurst":
		u.limitBurst, err = strconv.Atoi(value)
	case "Service.Type":
		u.kind = value
	case "Service.ExecStart":
		err = u.addStart(value)
	case "Service.Environment":
		var words []string
		words, err = splitWords(value)
		u.environment = append(u.environment, words...)
		if value == "" {
			u.environment = nil
		}
	case "Service.EnvironmentFile":
		u.envFiles = append(u.envFiles, value)
		if value == "" {
			u.envFiles = nil
		}
	case "Service.WorkingDirectory":
		u.dir = value
	case "Service.Restart":
		u.restart = value
	case "Service.RestartSec":
		u.restartWait, err = parseSpan(value)
	case "Service.TimeoutStopSec":
		u.stopTimeout, err = parseSpan(value)
	case "Service.KillMode":
		u.killMode = value
	case "Service.RemainAfterExit":
		u.remain = value == "yes" || value == "true" || value == "1" || value == "on"
	case "Install.WantedBy":
		u.wantedBy = append(u.wantedBy, strings.Fields(value)...)
	}
	if err != nil {
		return fmt.Errorf("%s=: %w", key, err)
	}
	return nil
}

func (u *unit) addStart(value string) error {
	if value == "" {
		u.start = nil
		return nil
	}
	words, err := splitWords(value)
	if err != nil {
		return err
	}
	if len(words) == 0 || words[0] == "" {
		return fmt.Errorf("no program in %q", value)
	}
	u.start = append(u.start, words)
	return nil
}

// parseSpan reads a time as systemd writes it: plain seconds, or numbers with units, summed;
// "infinity" is 0.
func parseSpan(s string) (time.Duration, error) {
	if s == "infinity" {
		return 0, nil
	}
	units := []struct {
		name string
		size time.Duration
	}{
		{"min", time.Minute}, {"ms", time.Millisecond}, {"us", time.Microsecond}, {"sec", time.Second},
		{"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour}, {"", time.Second},
	}
	var total time.Duration
	rest := strings.TrimSpace(s)
	if rest == "" {
		return 0, fmt.Errorf("time %q: want seconds, or a number with a unit such as 10s or 5min", s)
	}
	for rest != "" {
		digits := strings.IndexFunc(rest, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
		if digits < 0 {
			digits = len(rest)
		}
		n, err := strconv.ParseFloat(rest[:digits], 64)
		if err != nil || n > 1e6 {
			return 0, fmt.Errorf("time %q: want seconds, or a number with a unit such as 10s or 5min", s)
		}
		rest = strings.TrimSpace(rest[digits:])
		for _, u := range units {
			if after, ok := strings.CutPrefix(rest, u.name); ok {
				total += time.Duration(n * float64(u.size))
				rest = strings.TrimSpace(after)
				break
			}
		}
	}
	return total, nil
}
