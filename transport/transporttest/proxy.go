package transporttest

import (
	"errors"
	"net"
	"sync"
)

// A Proxy carries TCP connections to one address, until it is told to stall: then nothing
// is lost or closed, but nothing arrives either, as when a cable is pulled.
type Proxy struct {
	l  net.Listener
	to string

	mu    sync.Mutex
	flows chan struct{} // closed while bytes flow
	conns []net.Conn
	count int
	wg    sync.WaitGroup
}

// NewProxy listens on the loopback and carries to addr, until Close.
func NewProxy(addr string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{l: l, to: addr, flows: make(chan struct{})}
	close(p.flows)
	p.wg.Go(p.accept)
	return p, nil
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.l.Addr().String() }

// Accepted returns how many connections there were.
func (p *Proxy) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// Stall stops carrying, on connections there are and to come.
func (p *Proxy) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flows = make(chan struct{})
}

// Resume carries on, after Stall.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.flows)
}

// Close ends everything, stalled or not.
func (p *Proxy) Close() error {
	err := p.l.Close()
	p.mu.Lock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	select {
	case <-p.flows:
	default:
		close(p.flows)
	}
	p.mu.Unlock()
	p.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (p *Proxy) accept() {
	for {
		from, err := p.l.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() {
			to, err := net.Dial("tcp", p.to)
			if err != nil {
				_ = from.Close()
				return
			}
			p.mu.Lock()
			p.count++
			p.conns = append(p.conns, from, to)
			p.mu.Unlock()
			p.wg.Go(func() { p.carry(to, from) })
			p.carry(from, to)
		})
	}
}

// carry copies from src to dst while bytes may flow.
func (p *Proxy) carry(dst, src net.Conn) {
	defer dst.Close() // it is over
	defer src.Close() // it is over
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		p.mu.Lock()
		flows := p.flows
		p.mu.Unlock()
		<-flows
		if n > 0 {
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
