package mke

import (
	"context"
	"net"
	"sync"

	"github.com/mkesdk/mkesdk/hosts"
	"github.com/mkesdk/mkesdk/transport"
)

// SSH is the [Dialer] over package transport: it makes a connection of the plain data
// of a hosts.yaml or an MkeConfig, and of what only the caller can know, which are its
// fields. HostKeys is required. It may be used by several goroutines; its fields are not
// to be changed once it is in use.
type SSH struct {
	// HostKeys says how a host proves who it is, a bastion included. There is no
	// default that believes.
	HostKeys transport.HostKeys
	// KeyPassphrase is asked for the passphrase of an encrypted key file, once for
	// each file. Without it such keys work only through the agent.
	KeyPassphrase func(ctx context.Context, file string) ([]byte, error)
	// AgentSocket is the socket of an SSH agent; programs pass $SSH_AUTH_SOCK. Its
	// keys are offered to hosts for which no key is given.
	AgentSocket string
	// SudoPassword is asked, once for a connection, where the user is not root and
	// sudo wants a password.
	SudoPassword func(ctx context.Context) (string, error)

	// KeyFile replaces the key of the existing control plane hosts, as MkeConfig has
	// it: that is a path on whichever machine installed the cluster. BastionKeyFile does
	// the same for the bastions in front of them. [Connect] applies both to what it reads
	// from MkeConfig; hosts that are being added are reached with their own.
	KeyFile        string
	BastionKeyFile string

	// NetDial, if set, opens the connection to the first hop in place of a
	// net.Dialer. It is to return when ctx ends.
	NetDial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Trace, if set, is told of each command once it has ended. It delays the
	// command's caller.
	Trace func(transport.Call)
	// MaxPerBastion bounds the hosts behind one bastion that are dialed at the same
	// time, and MaxSessions the commands that run at the same time on one host; the
	// defaults of transport.Dialer if zero.
	MaxPerBastion int
	MaxSessions   int

	mu     sync.Mutex
	dialer *transport.Dialer // made with the first Dial
}

// Dial connects to a host, through its bastions if it has some, which hosts share. The
// errors are those of transport.Dialer.
func (s *SSH) Dial(ctx context.Context, h hosts.SSH) (transport.Conn, error) {
	conn, err := s.shared().Dial(ctx, s.config(h.WithDefaults()))
	if err != nil {
		return nil, err // a nil *Client in a Conn would not be nil
	}
	return conn, nil
}

// Close ends the connections to bastions, and with them those to the hosts behind
// them. Connections to other hosts belong to whoever dialed them.
func (s *SSH) Close() error {
	return s.shared().Close()
}

func (s *SSH) shared() *transport.Dialer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dialer == nil {
		s.dialer = &transport.Dialer{NetDial: s.NetDial, Trace: s.Trace, MaxPerBastion: s.MaxPerBastion, MaxSessions: s.MaxSessions}
	}
	return s.dialer
}

// config is h for package transport. Only the host itself is ever asked for root, so
// that the password goes to no bastion.
func (s *SSH) config(h hosts.SSH) transport.Config {
	c := s.hop(h)
	c.SudoPassword = s.SudoPassword
	for at, b := &c, h.Bastion; b != nil; at, b = at.Bastion, b.Bastion {
		hop := s.hop(*b)
		at.Bastion = &hop
	}
	return c
}

func (s *SSH) hop(h hosts.SSH) transport.Config {
	return transport.Config{
		Address: h.Address, Port: h.Port, User: h.User, HostKeys: s.HostKeys,
		Auth: transport.Auth{KeyFile: h.KeyPath, Passphrase: s.KeyPassphrase, AgentSocket: s.AgentSocket},
	}
}

// existing is how an existing control plane host is reached from here: as MkeConfig
// says, less the keys that are replaced.
func (s *SSH) existing(h hosts.SSH) hosts.SSH {
	if s.KeyFile != "" {
		h.KeyPath = s.KeyFile
	}
	return s.replaceBastionKeys(h)
}

func (s *SSH) replaceBastionKeys(h hosts.SSH) hosts.SSH {
	if s.BastionKeyFile == "" || h.Bastion == nil {
		return h
	}
	b := s.replaceBastionKeys(*h.Bastion)
	b.KeyPath = s.BastionKeyFile
	h.Bastion = &b
	return h
}
