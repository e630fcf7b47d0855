package transporttest_test

import (
	"net"
	"testing"

	"github.com/mkesdk/mkesdk/transport"
	"github.com/mkesdk/mkesdk/transport/transporttest"
)

func TestHostIsConn(t *testing.T) {
	transporttest.TestConn(t, "/fake", func(t *testing.T) transport.Conn {
		h := transporttest.New(t, "root@fake:22")
		for _, program := range []string{"printf", "cat", "mkesdk-no-such-program"} {
			h.Handle(transporttest.Local, program)
		}
		h.Handle(transporttest.Local, "/bin/sh", "-c")
		h.HandleDial(new(net.Dialer).DialContext)
		return h
	})
}
