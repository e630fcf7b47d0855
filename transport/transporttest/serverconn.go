package transporttest

import (
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// A serverConn is one authenticated connection.
type serverConn struct {
	server *Server
	conn   *ssh.ServerConn

	mu       sync.Mutex
	sessions int
}

// serve answers everything that the client asks for, until the connection ends.
func (c *serverConn) serve(ctx context.Context, chans <-chan ssh.NewChannel, reqs <-chan *ssh.Request) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() {
		for req := range reqs {
			if c.server.Silence == SilentProbe {
				continue
			}
			if req.WantReply {
				// OpenSSH says no to a keep-alive probe as to everything it does not
				// know: that there is an answer is what counts.
				_ = req.Reply(false, nil)
			}
		}
	})
	for ch := range chans {
		running.Go(func() { c.open(ctx, ch) })
	}
	cancel()
	running.Wait()
}

// open answers a request for a channel.
func (c *serverConn) open(ctx context.Context, ch ssh.NewChannel) {
	switch ch.ChannelType() {
	case "session":
		if c.server.Silence == SilentOpen {
			return
		}
		if !c.enter() {
			_ = ch.Reject(ssh.ConnectionFailed, "open failed") // as OpenSSH says it
			return
		}
		defer c.leave()
		channel, reqs, err := ch.Accept()
		if err != nil {
			return
		}
		serveSession(ctx, c, channel, reqs)
	case "direct-tcpip":
		var to struct {
			Host       string
			Port       uint32
			OriginHost string
			OriginPort uint32
		}
		if ssh.Unmarshal(ch.ExtraData(), &to) != nil {
			_ = ch.Reject(ssh.ConnectionFailed, "malformed request")
			return
		}
		c.forward(ctx, ch, "tcp", net.JoinHostPort(to.Host, strconv.FormatUint(uint64(to.Port), 10)))
	case "direct-streamlocal@openssh.com":
		var to struct {
			Path     string
			Reserved string
			Unused   uint32
		}
		if ssh.Unmarshal(ch.ExtraData(), &to) != nil {
			_ = ch.Reject(ssh.ConnectionFailed, "malformed request")
			return
		}
		c.forward(ctx, ch, "unix", to.Path)
	default:
		_ = ch.Reject(ssh.UnknownChannelType, "unknown channel type")
	}
}

func (c *serverConn) enter() bool {
	limit := c.server.MaxSessions
	if limit == 0 {
		limit = 10
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sessions >= limit {
		return false
	}
	c.sessions++
	return true
}

func (c *serverConn) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions--
}

// forward carries a connection to addr.
func (c *serverConn) forward(ctx context.Context, ch ssh.NewChannel, network, addr string) {
	if c.server.Silence == SilentDial {
		return
	}
	dial := c.server.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, network, addr)
	if err != nil {
		_ = ch.Reject(ssh.ConnectionFailed, strings.ToValidUTF8(err.Error(), ""))
		return
	}
	channel, reqs, err := ch.Accept()
	if err != nil {
		_ = conn.Close()
		return
	}
	go ssh.DiscardRequests(reqs)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(conn, channel)
		closeWrite(conn)
	})
	both.Go(func() {
		_, _ = io.Copy(channel, conn)
		_ = channel.CloseWrite()
	})
	both.Wait()
	_ = channel.Close()
	_ = conn.Close()
}

// closeWrite passes on the end of one direction.
func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = conn.Close()
}
