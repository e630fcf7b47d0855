package initd

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openPTY makes a terminal of the host's own and returns its two ends.
func openPTY(rows, cols uint16) (pty, tty *os.File, err error) {
	pty, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("terminal: %w", err)
	}
	defer func() {
		if err != nil {
			_ = pty.Close()
		}
	}()
	fd := int(pty.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, fmt.Errorf("terminal: unlock: %w", err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, fmt.Errorf("terminal: number: %w", err)
	}
	if rows > 0 && cols > 0 {
		if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols}); err != nil {
			return nil, nil, fmt.Errorf("terminal: size: %w", err)
		}
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("terminal: %w", err)
	}
	return pty, tty, nil
}
