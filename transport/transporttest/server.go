package transporttest

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// A Server is an SSH server that runs real commands as the user it runs as itself,
// whoever logs in. It needs no testing.T, so that programs may use it too: the sandbox
// does, for hosts without OpenSSH. Set the fields first, then call Serve. The zero Server
// lets nobody in.
type Server struct {
	HostKeys       []ssh.Signer    // one of each kind at most; an ed25519 key is made if there are none
	AuthorizedKeys []ssh.PublicKey // keys, and certificate authorities, that let one in as any user

	// Authorize, if set, has a say of its own: it reports whether key lets user in. It is
	// not asked about AuthorizedKeys.
	Authorize func(user string, key ssh.PublicKey) bool

	Shell []string // the login shell, to which the command is appended; /bin/sh -c if empty
	Env   []string // the environment of commands; what the client wants to set is ignored
	Dir   string   // where commands start

	// Handler, if set, runs commands in place of Shell. It reads and writes e's streams,
	// and returns the exit status. Its context ends when the client closes the session or
	// asks for a signal.
	Handler func(ctx context.Context, e *Exec) int

	// OnExec is called when a command starts, OnExit when it has ended.
	OnExec func(e *Exec)
	OnExit func(e *Exec, status int, signal string)

	// Dial makes the connections that clients ask for; a net.Dialer's if nil.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	Banner       string // shown before authentication
	MaxSessions  int    // at the same time on one connection; 10 if zero, none if negative
	MaxAuthTries int    // 6 if zero
	MaxStartups  int    // connections that are not authenticated; more are closed without a word; no limit if zero

	// Silence makes the server stop answering at a point, once for each connection that gets there.
	Silence Silence

	mu       sync.Mutex
	config   *ssh.ServerConfig
	done     chan struct{} // closed by Close
	open     map[net.Conn]bool
	starting int
}

// Silence is a point at which a Server falls silent without closing the connection.
type Silence uint8

// The points, in the order in which a client gets there.
const (
	SilentNever  Silence = iota
	SilentAccept         // after accepting the connection
	SilentAuth           // instead of saying whether a key is good
	SilentOpen           // instead of opening a session
	SilentExec           // instead of confirming a command; it does not run
	SilentRun            // once a command runs: nothing is answered or sent any more on that session
	SilentDial           // instead of opening a connection through the host
	SilentProbe          // instead of answering keep-alive probes
)

// NewHostKey makes a fresh ed25519 host key.
func NewHostKey() (ssh.Signer, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return ssh.NewSignerFromKey(key)
}

// setup makes what serving needs, once.
func (s *Server) setup() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config != nil {
		return nil
	}
	if len(s.HostKeys) == 0 {
		key, err := NewHostKey()
		if err != nil {
			return err
		}
		s.HostKeys = []ssh.Signer{key}
	}
	checker := &ssh.CertChecker{
		IsUserAuthority: s.authorized,
		UserKeyFallback: func(conn ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if s.authorized(key) || s.Authorize != nil && s.Authorize(conn.User(), key) {
				return nil, nil
			}
			return nil, fmt.Errorf("user %s: key is not authorized", conn.User())
		},
	}
	s.done = make(chan struct{})
	s.open = make(map[net.Conn]bool)
	s.config = &ssh.ServerConfig{
		ServerVersion: "SSH-2.0-mkesdk",
		MaxAuthTries:  s.MaxAuthTries,
		PublicKeyCallback: func(conn ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if s.Silence == SilentAuth {
				<-s.done
			}
			return checker.Authenticate(conn, key)
		},
	}
	if s.Banner != "" {
		s.config.BannerCallback = func(ssh.ConnMetadata) string { return s.Banner }
	}
	for _, k := range s.HostKeys {
		s.config.AddHostKey(k)
	}
	return nil
}

func (s *Server) authorized(key ssh.PublicKey) bool {
	return slices.ContainsFunc(s.AuthorizedKeys, func(k ssh.PublicKey) bool {
		return string(k.Marshal()) == string(key.Marshal())
	})
}

// Serve accepts connections until l fails, or until ctx ends or the server is closed,
// when it returns nil. It closes l, and waits for its connections. A Server may serve
// several listeners.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if err := s.setup(); err != nil {
		return errors.Join(err, l.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	running.Go(func() {
		select {
		case <-s.done:
			cancel()
		case <-ctx.Done():
		}
	})
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			running.Go(func() { s.ServeConn(ctx, conn) })
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, syscall.ECONNABORTED) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
			select { // it passes
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
			}
		default:
			return errors.Join(err, l.Close())
		}
	}
}

// ServeConn serves one connection until it or ctx ends, or the server is closed. It
// closes the connection.
func (s *Server) ServeConn(ctx context.Context, conn net.Conn) {
	defer conn.Close() // it is over
	if s.setup() != nil || !s.enter(conn) {
		return
	}
	defer s.leave(conn)
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if s.Silence == SilentAccept {
		select {
		case <-s.done:
		case <-ctx.Done():
		}
		s.started()
		return
	}
	sc, chans, reqs, err := ssh.NewServerConn(conn, s.config)
	s.started()
	if err != nil {
		return
	}
	(&serverConn{server: s, conn: sc}).serve(ctx, chans, reqs)
}

// enter notes a connection, and reports whether it is to be served.
func (s *Server) enter(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.done:
		return false
	default:
	}
	if s.MaxStartups > 0 && s.starting >= s.MaxStartups {
		return false
	}
	s.open[conn] = true
	s.starting++
	return true
}

func (s *Server) started() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starting--
}

func (s *Server) leave(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, conn)
}

// Connections returns how many are open.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Disconnect closes every connection, as a reboot would, but goes on accepting.
func (s *Server) Disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.open {
		_ = conn.Close()
	}
}

// Close ends the server, its connections and the commands that run on them. Serve returns
// when they have ended. Closing twice is no error.
func (s *Server) Close() error {
	if err := s.setup(); err != nil {
		return err
	}
	s.mu.Lock()
	select {
	case <-s.done:
	default:
		close(s.done)
	}
	s.mu.Unlock()
	s.Disconnect()
	return nil
}
