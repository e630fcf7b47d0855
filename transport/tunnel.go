package transport

import (
	"io"
	"net"
	"sync/atomic"
	"time"
)

// A watched connection remembers when something last arrived, and whether the peer ever
// said that it speaks SSH.
type watched struct {
	net.Conn
	start time.Time
	last  atomic.Int64 // time since start
	head  []byte       // what arrived first; only the reader touches it until greeted
	greet atomic.Bool
}

func watch(c net.Conn) *watched { return &watched{Conn: c, start: time.Now()} }

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 {
		w.last.Store(int64(time.Since(w.start)))
		if !w.greet.Load() {
			w.listen(p[:n])
		}
	}
	return n, err
}

// greetingLimit is how much text a server may send before its version.
const greetingLimit = 16 << 10

func (w *watched) listen(p []byte) {
	const version = "SSH-"
	for _, b := range p {
		w.head = append(w.head, b)
		if n := len(w.head); n >= len(version) && string(w.head[n-len(version):]) == version || n > greetingLimit {
			w.greet.Store(true)
			w.head = nil
			return
		}
	}
}

// silence is how long nothing has arrived.
func (w *watched) silence() time.Duration {
	return time.Since(w.start) - time.Duration(w.last.Load())
}

// A tunnel is one end of a connection through an SSH channel. Channels know no deadlines,
// and closing one waits for the peer; so what a caller gets is a pipe, which does
// neither, and two goroutines carry its bytes. They end when either side closes, or the
// SSH connection ends.
type tunnel struct {
	net.Conn
	local, remote net.Addr
}

// openTunnel makes a tunnel of an open channel to addr. It calls done when nothing is
// carried any more.
func openTunnel(ch net.Conn, local, remote net.Addr, done func()) *tunnel {
	ours, theirs := net.Pipe()
	ended := make(chan struct{}, 2)
	carry := func(dst, src net.Conn) {
		_, _ = io.Copy(dst, src) // either side ends the connection when it likes; the other side sees EOF
		_ = theirs.Close()
		_ = ch.Close()
		ended <- struct{}{}
	}
	go carry(theirs, ch)
	go carry(ch, theirs)
	go func() {
		<-ended
		<-ended
		done()
	}()
	return &tunnel{Conn: ours, local: local, remote: remote}
}

func (t *tunnel) LocalAddr() net.Addr  { return t.local }
func (t *tunnel) RemoteAddr() net.Addr { return t.remote }

// An address is a net.Addr made of text.
type address struct{ network, text string }

func (a address) Network() string { return a.network }
func (a address) String() string  { return a.text }
