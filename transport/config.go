package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"golang.org/x/crypto/ssh"
)

// The defaults of a Config and of a Dialer.
const (
	DefaultDialTimeout   = 30 * time.Second
	DefaultKeepAlive     = 15 * time.Second
	DefaultMaxSessions   = 8
	DefaultMaxPerBastion = 8

	keepAliveMisses = 3 // unanswered probes that end a connection
	maxHops         = 16
)

// A Config says how to reach a host. Address, User, Auth and HostKeys are required.
type Config struct {
	Address string // a name or an IP address, also as host:port, [address] or [address]:port
	Port    int    // 22 if zero and Address has none
	User    string // login name
	Auth    Auth   // how to prove who we are

	// HostKeys says how the host proves who it is. It is asked for the configured address
	// and port, also behind a bastion.
	HostKeys HostKeys

	// SudoPassword is asked, once for a connection, when sudo wants a password. If it is
	// nil and sudo wants one, commands fail with ErrSudoPassword. The password is kept in
	// memory until the connection is closed, and goes to sudo's standard input only.
	SudoPassword func(ctx context.Context) (string, error)

	// Bastion is the hop in front of the host, if there is one. It may have one itself.
	// Each hop has its own address, user, keys and host keys.
	Bastion *Config

	DialTimeout time.Duration // bounds connecting to and authenticating with this hop, unless the context ends before; 30 seconds if zero
	KeepAlive   time.Duration // between probes, of which three unanswered end the connection; 15 seconds if zero, no probes if negative
}

// Auth says which keys are offered to a host. At least one field is to be set.
type Auth struct {
	// KeyFile is a private key in the formats of OpenSSH, or a public key whose private
	// half the agent holds. "~/" is the home directory of whoever runs this program. A
	// certificate is used if it lies beside as KeyFile-cert.pub. A key given so is the
	// only one offered.
	KeyFile string

	// Passphrase is asked for the passphrase of an encrypted KeyFile, once for each file
	// and Dialer, unless the agent holds the key.
	Passphrase func(ctx context.Context, file string) ([]byte, error)

	// Signers are keys that the caller has loaded. If set, they are the only ones
	// offered, beside KeyFile's.
	Signers []ssh.Signer

	// AgentSocket is the socket of an SSH agent; programs usually pass $SSH_AUTH_SOCK.
	// Its keys are offered if neither KeyFile nor Signers is set, six at most, because
	// servers disconnect after that many.
	AgentSocket string
}

// hop is a Config that was checked, with its defaults filled in.
type hop struct {
	Config
	host string
	addr string // host:port
	name string // user@host:port
}

// check fills in the defaults and says everything that is wrong with c and with its bastions.
func (c Config) check() (hop, error) {
	h := hop{Config: c}
	var errs []error
	host, port, err := splitAddress(c.Address, c.Port)
	if err != nil {
		errs = append(errs, err)
	}
	h.host, h.Port = host, port
	h.addr = net.JoinHostPort(host, strconv.Itoa(port))
	h.name = c.User + "@" + h.addr
	if c.User == "" {
		errs = append(errs, errors.New("there is no user to log in as"))
	}
	if c.HostKeys == nil {
		errs = append(errs, errors.New("HostKeys is not set, and there is no default: use KnownHosts, AcceptNew or Pinned"))
	}
	if c.Auth.KeyFile == "" && len(c.Auth.Signers) == 0 && c.Auth.AgentSocket == "" {
		errs = append(errs, fmt.Errorf("%w: there is no key to log in with: neither a key file nor an agent is given", ErrAuth))
	}
	if c.DialTimeout < 0 {
		errs = append(errs, fmt.Errorf("DialTimeout is %v, which is negative", c.DialTimeout))
	}
	if h.DialTimeout == 0 {
		h.DialTimeout = DefaultDialTimeout
	}
	if h.KeepAlive == 0 {
		h.KeepAlive = DefaultKeepAlive
	}
	if err := errors.Join(errs...); err != nil {
		where := c.Address
		if where == "" {
			where = "config"
		}
		return h, fmt.Errorf("%s: %w", where, err)
	}
	return h, nil
}

// checkAll checks every hop of c.
func (c Config) checkAll() error {
	var errs []error
	seen := 0
	for at := &c; at != nil; at = at.Bastion {
		if seen++; seen > maxHops {
			errs = append(errs, fmt.Errorf("%s: more than %d hops; is a bastion its own bastion?", c.Address, maxHops))
			break
		}
		if _, err := at.check(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
