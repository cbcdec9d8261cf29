package fault

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
)

const (
	request = "POST / HTTP/1.1\r\nHost: app\r\nContent-Length: 4\r\n\r\nbody"
	reply   = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nanswer"
)

// listen starts an app that reads want bytes of each request, or as many as there are, gives them away and answers.
func listen(t *testing.T, want int) (addr string, got <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	read := make(chan string, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			data := make([]byte, want)
			n, _ := io.ReadFull(c, data)
			read <- string(data[:n])
			_, _ = io.WriteString(c, reply)
			_ = c.Close()
		}
	}()
	return l.Addr().String(), read
}

// send sends the request, and gives what comes back until the connection ends.
func send(t *testing.T, addr string) (string, error) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		return "", err
	}
	_ = c.(*net.TCPConn).CloseWrite()
	data, err := io.ReadAll(c)
	return string(data), err
}

func TestAFaultIsWhereItIsSaidToBe(t *testing.T) {
	t.Parallel()
	head := strings.Index(request, "body")
	for _, c := range []struct {
		name    string
		at      Place
		app     string // what of the request reaches the app
		answers int    // bytes of the answer that come back
	}{
		{"first byte", Requested(1), request[:1], 0},
		{"request's head", RequestHead, request[:head], 0},
		{"request's body", RequestBody, request[:head+2], 0},
		{"request's last byte", RequestLastByte, request[:head+3], 0},
		{"request", Request, request, 0},
		{"status line", StatusLine, request, 10},
		{"headers", Headers, request, len("HTTP/1.1 200 OK\r\nCont")},
		{"head", Head, request, len(reply) - 6},
		{"body", Body, request, len(reply) - 3},
		{"last byte", LastByte, request, len(reply) - 1},
		{"answer", Answer, request, len(reply)},
	} {
		for _, action := range []Action{Close, Reset} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				app, got := listen(t, len(request))
				p := Start(t, app, Fault{At: c.at, Action: action})
				back, err := send(t, p.Addr)
				if reset := errors.Is(err, syscall.ECONNRESET); !strings.HasPrefix(reply[:c.answers], back) || !reset && len(back) != c.answers || reset != (action == Reset) || err != nil && !reset {
					t.Errorf("came back: %q, %v; want %q", back, err, reply[:c.answers])
				}
				if data := <-got; data != c.app {
					t.Errorf("the app got %q, want %q", data, c.app)
				}
				p.Reached()
				if whole := len(p.Requests()) == 1; whole != (c.app == request) {
					t.Errorf("the request counts as whole: %v", whole)
				}
			})
		}
	}
}

func TestAStallEndsWithReleaseAndAVanishedHostDoesNot(t *testing.T) {
	t.Parallel()
	app, _ := listen(t, len(request))
	p := Start(t, app, Fault{At: Body, Action: Stall}, Fault{At: Body, Action: Vanish}, Fault{Answer: Unframed, Bytes: true, Action: Close})
	stalled, vanished := make(chan string), make(chan string)
	for _, back := range []chan string{stalled, vanished} {
		go func() {
			c, err := net.Dial("tcp", p.Addr)
			if err != nil {
				return
			}
			defer c.Close()
			_, _ = io.WriteString(c, request)
			for whole := ""; ; {
				data := make([]byte, 100)
				n, err := c.Read(data)
				if whole += string(data[:n]); whole == reply || err != nil {
					back <- whole
					return
				}
			}
		}()
		p.Reached()
	}
	p.Release()
	if got := <-stalled; got != reply {
		t.Errorf("after the stall came %q in all", got)
	}
	back, err := send(t, p.Addr)
	if want := "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nanswer"; back != want || err != nil {
		t.Errorf("without a length: %q, %v", back, err)
	}
	select {
	case got := <-vanished:
		t.Errorf("the host that has vanished gave %q", got)
	default:
	}
}

func TestRequestsCanBeNamedAndInterrupted(t *testing.T) {
	t.Parallel()
	app, _ := listen(t, len(request))
	p := Start(t, app, Fault{At: Accepted, Action: Interrupt, Answer: Instead("early")})
	for _, c := range []struct {
		name, head string
		fault      Fault
		want       string
	}{
		{"before a byte was read", "", Fault{}, "early"},
		{"named", "Host: app\r\n", Fault{Answer: Before("first ")}, "first " + reply},
		{"named again", "Host: app\r\n", Fault{Answer: Behind(" second")}, reply + " second"},
		{"another one named", "Host: other\r\n", Fault{Action: Reset}, reply + " second"},
		{"in the request", "Host: app\r\n", Fault{At: RequestHead, Action: Interrupt, Answer: Instead("early")}, "early"},
	} {
		if c.head != "" {
			p.For(c.head, c.fault)
		}
		if back, err := send(t, p.Addr); back != c.want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", c.name, back, err, c.want)
		}
	}
}
