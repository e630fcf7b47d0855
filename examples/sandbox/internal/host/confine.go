package host

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/mkesdk/mkesdk/examples/sandbox/internal/reap"
)

// withheld are the capabilities that would reach the machine under the host: its clock, its
// kernel's modules and ports, its power, its log.
func withheld() []uintptr {
	return []uintptr{
		unix.CAP_SYS_TIME, unix.CAP_SYS_MODULE, unix.CAP_SYS_BOOT, unix.CAP_SYS_RAWIO,
		unix.CAP_SYSLOG, unix.CAP_MAC_ADMIN, unix.CAP_MAC_OVERRIDE, unix.CAP_WAKE_ALARM,
	}
}

// startConfined starts a process that never has the withheld capabilities, nor has anything below
// it. They are a thread's, and a process has those of the thread that forked it: so one thread
// gives them up, forks, and is not used again.
func startConfined(r *reap.Reaper, cmd *exec.Cmd) (*reap.Process, error) {
	type started struct {
		p   *reap.Process
		err error
	}
	out := make(chan started)
	go func() {
		runtime.LockOSThread() // not unlocked: the thread ends with the goroutine
		var s started
		for _, c := range withheld() {
			// EINVAL: the kernel does not know it, so nobody has it.
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
				s.err = fmt.Errorf("give up capability %d: %w", c, err)
			}
		}
		if s.err == nil {
			s.p, s.err = r.Start(cmd)
		}
		out <- s
	}()
	s := <-out
	return s.p, s.err
}
