package initd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/wire"
)

// SystemctlMain is the program that a host has as systemctl, and as reboot, poweroff and halt:
// name is what it was started as. It returns the exit status.
func SystemctlMain(ctx context.Context, name string, args []string, stdout, stderr io.Writer) int {
	if isPower(name) {
		args = []string{name}
	}
	if len(args) == 1 && args[0] == "--version" {
		fmt.Fprintln(stdout, "systemd 255 (255.4-1ubuntu8)")
		return 0
	}
	if len(args) == 0 {
		args = []string{"list-units"}
	}
	a, err := ask(ctx, args)
	if err != nil {
		fmt.Fprintln(stderr, "Failed to connect to bus:", err)
		return 1
	}
	_, _ = io.WriteString(stdout, a.Stdout)
	_, _ = io.WriteString(stderr, a.Stderr)
	return a.Code
}

func ask(ctx context.Context, args []string) (*Answer, error) {
	c, err := wire.Dial(ctx, Socket)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := wire.Send(c, Request{Systemctl: args}); err != nil {
		return nil, err
	}
	var r Reply
	if _, err := wire.Receive(c, &r); err != nil {
		return nil, err
	}
	if r.Failure != nil {
		return nil, r.Failure
	}
	if r.Answer == nil {
		return nil, errors.New("init gave no answer")
	}
	return r.Answer, nil
}

// JournalctlMain is the program that a host has as journalctl: it prints what a unit wrote,
// whole or its last lines. It returns the exit status.
func JournalctlMain(args []string, stdout, stderr io.Writer) int {
	m := NewManager(nil, "", LogDir, nil)
	unitName, lines := "", 0
	for i := 0; i < len(args); i++ {
		value := func() string {
			if i++; i < len(args) {
				return args[i]
			}
			return ""
		}
		switch args[i] {
		case "-u", "--unit":
			unitName = value()
		case "-n", "--lines":
			lines, _ = strconv.Atoi(value())
		case "--no-pager", "-b", "-q", "--quiet", "-x", "-e", "-xe":
		case "-o", "--output", "-S", "--since":
			value()
		default:
			fmt.Fprintf(stderr, "journalctl: %q is not known here; it takes -u UNIT and -n LINES\n", args[i])
			return 1
		}
	}
	if unitName == "" {
		fmt.Fprintln(stderr, "journalctl: -u UNIT is needed")
		return 1
	}
	text, err := m.Log(unitName, lines)
	if err != nil && !os.IsNotExist(err) {
		fmt.Fprintln(stderr, "journalctl:", err)
		return 1
	}
	if text == "" {
		text = "-- No entries --\n"
	}
	_, _ = io.WriteString(stdout, text)
	return 0
}

// LogDir is where services' output goes on a host.
const LogDir = "/var/log"
