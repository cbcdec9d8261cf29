package fault

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
)

// errOver ends a connection that a fault has ended, or a peer.
var errOver = errors.New("the connection is over")

// serve runs the exchanges of one connection.
func (p *Proxy) serve(gate *net.TCPConn) {
	defer p.own(gate)()
	// What is not read soon holds up the gate's writes, as a host that is gone would.
	_ = gate.SetReadBuffer(64 << 10)
	if f, ok := p.atAccept(); ok && p.act(gate, f) != nil {
		return
	}
	for {
		head, err := readHead(gate)
		if err != nil || p.exchange(gate, head, p.begin(head)) != nil {
			return
		}
	}
}

// exchange passes one request on and its answer back, as far as the fault lets it.
func (p *Proxy) exchange(gate *net.TCPConn, head []byte, f Fault) error {
	app, err := net.Dial("tcp", p.upstream)
	if err != nil {
		return err
	}
	defer p.own(app)()
	if err := p.passOn(gate, app, head, f); err != nil {
		return err
	}
	answer, err := readAnswer(app)
	if err != nil {
		return err
	}
	if f.Answer != nil {
		answer = f.Answer(answer)
	}
	stop := len(answer)
	if f.At.side == inAnswer {
		stop = f.At.in(answer, len(answer))
	}
	if err := give(gate, answer[:stop], f.Bytes); err != nil {
		return err
	}
	if f.At.side == inAnswer {
		if err := p.act(gate, f); err != nil {
			return err
		}
	}
	if err := give(gate, answer[stop:], f.Bytes); err != nil {
		return err
	}
	if bytes.Contains(answer[:headLength(answer, len(answer))], []byte("\r\nConnection: close\r\n")) {
		return errOver
	}
	return nil
}

// passOn passes a request on, of which the head was read.
func (p *Proxy) passOn(gate *net.TCPConn, app net.Conn, head []byte, f Fault) error {
	request := make([]byte, len(head)+bodyLength(head))
	read, stop := copy(request, head), len(request)
	if f.At.side == inRequest {
		stop = f.At.in(head, len(request))
	}
	if read < stop {
		if _, err := io.ReadFull(gate, request[read:stop]); err != nil {
			return err
		}
		read = stop
	}
	if _, err := app.Write(request[:stop]); err != nil {
		return err
	}
	if f.At.side == inRequest {
		if err := p.act(gate, f); err != nil {
			return err
		}
	}
	if _, err := io.ReadFull(gate, request[read:]); err != nil {
		return err
	}
	p.note(request)
	_, err := app.Write(request[stop:])
	return err
}

// act does what the fault says, here and now.
func (p *Proxy) act(gate *net.TCPConn, f Fault) error {
	switch f.Action {
	case Close:
		_ = gate.CloseWrite() // not Close: with bytes unread that would be a reset
		p.reached <- struct{}{}
		_, _ = io.Copy(io.Discard, gate)
		return errOver
	case Reset:
		_ = gate.SetLinger(0)
		_ = gate.Close()
		p.reached <- struct{}{}
		return errOver
	case Interrupt:
		_, _ = gate.Write(f.Answer(nil))
		p.reached <- struct{}{}
		_, _ = io.Copy(io.Discard, gate)
		return errOver
	case Stall:
		p.reached <- struct{}{}
		select {
		case <-p.released:
			return nil
		case <-p.over:
			return errOver
		}
	case Vanish:
		p.reached <- struct{}{}
		<-p.over
		return errOver
	}
	return nil
}

// give writes, byte by byte if it is to be so.
func give(c net.Conn, data []byte, bytewise bool) error {
	if !bytewise {
		_, err := c.Write(data)
		return err
	}
	for i := range data {
		if _, err := c.Write(data[i : i+1]); err != nil { // Go's sockets do not gather small writes
			return err
		}
	}
	return nil
}

// readHead reads a request up to its blank line and not a byte further.
func readHead(c net.Conn) ([]byte, error) {
	var head []byte
	for one := make([]byte, 1); !bytes.HasSuffix(head, []byte("\r\n\r\n")); {
		if _, err := io.ReadFull(c, one); err != nil {
			return nil, err
		}
		head = append(head, one[0])
	}
	return head, nil
}

// bodyLength is what a request's head says of its body. The gate knows every body's length, so none is chunked.
func bodyLength(head []byte) int {
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
	if err != nil {
		return 0
	}
	return int(max(r.ContentLength, 0))
}

// readAnswer reads the app's whole answer, as the bytes it is.
func readAnswer(app net.Conn) ([]byte, error) {
	var raw bytes.Buffer
	resp, err := http.ReadResponse(bufio.NewReader(io.TeeReader(app, &raw)), nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return raw.Bytes(), err
}
