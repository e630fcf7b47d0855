package k0s

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/control"
)

var errStillRunning = errors.New("another k0s process is still running")

// running is what a k0s that runs keeps on the host so that others notice: a lock that ends with
// the process, and the configuration it was started with.
type running struct {
	lock *os.File
	file string
}

// hold takes the lock and writes the runtime configuration. node is nil on a worker.
func hold(v control.Vars, node json.RawMessage) (*running, error) {
	lock, err := os.OpenFile(v.RuntimeConfigPath+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errStillRunning
		}
		return nil, errors.Join(err, lock.Close())
	}
	spec := map[string]any{"k0sVars": v}
	if node != nil {
		spec["nodeConfig"] = node
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "k0s.k0sproject.io/v1beta1", "kind": "RuntimeConfig",
		"metadata": map[string]any{"creationTimestamp": time.Now().UTC().Format(time.RFC3339)}, "spec": spec,
	})
	if err == nil {
		err = os.WriteFile(v.RuntimeConfigPath, text, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to initialize runtime config: %w", errors.Join(err, lock.Close()))
	}
	return &running{lock: lock, file: v.RuntimeConfigPath}, nil
}

// release takes back what hold did; the lock's file stays, as k0s leaves it.
func (r *running) release() error {
	return errors.Join(os.Remove(r.file), r.lock.Close())
}

// held reports whether some k0s of this host holds the lock.
func held(v control.Vars) (bool, error) {
	f, err := os.OpenFile(v.RuntimeConfigPath+".lock", os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}
