package k0s

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/kubelet"
)

// KnobDir is where a host of the sandbox keeps the knobs that bend its k0s. A knob is a file:
//
//	never-bootstrap  the next start never asks for a certificate: no kubelet.conf, no status socket
//	never-register   the next start gets its certificate and answers, but its Node never appears
//	not-ready        while it is there, the Node says that it is not Ready
//	slow-start       holds a duration that passes before the Node is registered
//	status-delay     holds a duration that passes between Ready and the status socket; 2s without it
//
// The two that speak of the next start are removed by it, so that restarting the service helps.
const KnobDir = "/etc/sandbox"

const defaultStatusDelay = 2 * time.Second

// knobs are what the files of a directory say.
type knobs struct {
	kubelet     kubelet.Knobs
	statusDelay time.Duration
}

// readKnobs reads the knobs and removes those that are for one start.
func readKnobs(dir string) (knobs, error) {
	k := knobs{statusDelay: defaultStatusDelay}
	var errs []error
	once := func(name string) bool {
		err := os.Remove(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		return err == nil
	}
	duration := func(name string, to *time.Duration) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		d, perr := time.ParseDuration(strings.TrimSpace(string(text)))
		if err = errors.Join(err, perr); err != nil {
			errs = append(errs, fmt.Errorf("knob %s: %w", name, err))
			return
		}
		*to = d
	}
	k.kubelet.NeverBootstrap = once("never-bootstrap")
	k.kubelet.NeverRegister = once("never-register")
	duration("slow-start", &k.kubelet.StartDelay)
	duration("status-delay", &k.statusDelay)
	k.kubelet.NotReady = func() bool {
		_, err := os.Stat(filepath.Join(dir, "not-ready"))
		return err == nil
	}
	return k, errors.Join(errs...)
}
