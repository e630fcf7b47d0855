package transport

import (
	"context"
	"fmt"
	"net"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// An agentConn is a connection to an SSH agent, open for as long as its keys may have to sign.
type agentConn struct {
	socket string
	conn   net.Conn
	agent  agent.ExtendedAgent
}

// dialAgent connects to the agent behind a socket.
func dialAgent(ctx context.Context, socket string) (*agentConn, error) {
	path, err := expandHome(socket)
	if err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("%w: agent: %w", ErrAuth, err)
	}
	return &agentConn{socket: path, conn: conn, agent: agent.NewClient(conn)}, nil
}

func (a *agentConn) close() { _ = a.conn.Close() }

// signers returns the agent's keys. An agent may keep us waiting, for a person for
// example, so the context cuts it off.
func (a *agentConn) signers(ctx context.Context) ([]ssh.Signer, error) {
	stop := context.AfterFunc(ctx, a.close)
	signers, err := a.agent.Signers()
	if !stop() {
		return nil, fmt.Errorf("agent %s: %w", a.socket, ctxErr(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: agent %s: %w", ErrAuth, a.socket, err)
	}
	return signers, nil
}

// find returns the agent's signer for a public key, or nil if it holds none.
func (a *agentConn) find(ctx context.Context, public ssh.PublicKey) (ssh.Signer, error) {
	signers, err := a.signers(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range signers {
		if sameKey(s.PublicKey(), public) {
			return s, nil
		}
	}
	return nil, nil
}
