package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Listens reports whether something on the host listens on that TCP port.
func (m *Machine) Listens(port int) (bool, error) {
	pid := m.Pid()
	if pid == 0 {
		return false, fmt.Errorf("host %s: %w", m.cfg.Name, ErrDown)
	}
	for _, table := range []string{"tcp", "tcp6"} {
		data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "net", table))
		if os.IsNotExist(err) {
			continue // a machine without IPv6
		}
		if err != nil {
			return false, fmt.Errorf("host %s: sockets: %w", m.cfg.Name, err)
		}
		if listens(string(data), port) {
			return true, nil
		}
	}
	return false, nil
}

// listens looks into the kernel's table of TCP sockets, where an address is hexadecimal and state
// 0A is LISTEN.
func listens(table string, port int) bool {
	suffix := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) > 3 && strings.HasSuffix(f[1], suffix) && f[3] == "0A" {
			return true
		}
	}
	return false
}
