// Package fault is a network that fails at an exact byte: a TCP proxy in front of an HTTP/1.1 server that cuts, breaks,
// stalls or garbles an exchange where a test says so.
package fault

import (
	"bytes"
	"net"
	"slices"
	"sync"
	"testing"
)

// Proxy is a running proxy.
type Proxy struct {
	Addr string

	tb       testing.TB
	upstream string
	listener net.Listener
	group    sync.WaitGroup
	over     chan struct{} // closed with the test
	reached  chan struct{} // one token a fault whose place was reached
	released chan struct{} // closed by Release

	mu       sync.Mutex
	plan     []Fault // of the exchanges to come, in their order
	named    []named
	requests [][]byte
	heads    [][]byte
	conns    map[net.Conn]bool
}

// named is a fault for requests that say a text in their head.
type named struct {
	text  string
	fault Fault
}

// Start starts a proxy in front of upstream. The n-th exchange, over all connections, gets the n-th fault; further ones
// are passed on as they are.
func Start(tb testing.TB, upstream string, faults ...Fault) *Proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{
		Addr: l.Addr().String(), tb: tb, upstream: upstream, listener: l, plan: faults, conns: map[net.Conn]bool{},
		over: make(chan struct{}), reached: make(chan struct{}, 1<<16), released: make(chan struct{}),
	}
	p.group.Go(p.accept)
	tb.Cleanup(p.stop)
	return p
}

// For gives the requests whose head holds text a fault, beside those of Start. The latest for a text counts. Such a
// fault cannot be at Accepted.
func (p *Proxy) For(text string, f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.named = append(p.named, named{text, f})
}

// Reached waits until a fault's place was reached that was not waited for before.
func (p *Proxy) Reached() {
	select {
	case <-p.reached:
	case <-p.over:
	}
}

// Release lets everything go on that stalls, now and later. It is called once.
func (p *Proxy) Release() { close(p.released) }

// Requests gives the requests that have come in whole, byte by byte.
func (p *Proxy) Requests() [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// Heads gives the heads of the requests that have come at least as far as their blank line.
func (p *Proxy) Heads() [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.heads)
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.group.Go(func() { p.serve(c.(*net.TCPConn)) })
	}
}

func (p *Proxy) stop() {
	close(p.over)
	_ = p.listener.Close()
	p.mu.Lock()
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.group.Wait()
}

// own keeps a connection until it is closed, at the latest with the test.
func (p *Proxy) own(c net.Conn) (disown func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = true
	select {
	case <-p.over:
		_ = c.Close()
	default:
	}
	return func() {
		_ = c.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, c)
	}
}

// atAccept takes the next fault if it is one for the begin of a connection.
func (p *Proxy) atAccept() (f Fault, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.plan) == 0 || p.plan[0].At.side != atAccept {
		return f, false
	}
	f, p.plan = p.plan[0], p.plan[1:]
	return f, true
}

// begin notes a request whose head is here, and takes its fault.
func (p *Proxy) begin(head []byte) (f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heads = append(p.heads, head)
	for _, n := range slices.Backward(p.named) {
		if bytes.Contains(head, []byte(n.text)) {
			return n.fault
		}
	}
	if len(p.plan) > 0 {
		f, p.plan = p.plan[0], p.plan[1:]
	}
	return f
}

func (p *Proxy) note(request []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, request)
}
