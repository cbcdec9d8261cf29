package fault

import "bytes"

// Fault is what happens to one exchange: at a place of the request or of the answer, and with the answer itself. The
// zero Fault passes everything on.
type Fault struct {
	At     Place
	Action Action
	Answer func(app []byte) []byte // changes the app's answer, nil as long as the app was not asked
	Bytes  bool                    // the answer goes byte by byte, each in a packet of its own
}

// Action is what happens at the place of a fault.
type Action uint8

// The actions.
const (
	None      Action = iota
	Close            // the connection ends in order (FIN); what the gate still sends is read and dropped
	Reset            // the connection breaks (RST)
	Stall            // nothing moves until Release; then it goes on where it was
	Vanish           // the host is gone: nothing is read, written or closed any more
	Interrupt        // the answer is given here, whatever of the request is still to come; that is read and dropped
)

// Place is where in an exchange a fault is: between two bytes of it. The zero Place is behind the answer.
type Place struct {
	side   side
	offset func(message []byte, length int) int // nil: at the end
}

type side uint8

const (
	inAnswer side = iota
	atAccept
	inRequest
)

// The places.
var (
	// Accepted is behind the connection's begin, before a byte of it is read.
	Accepted = Place{side: atAccept}
	// RequestHead is behind the blank line of the request.
	RequestHead = Place{inRequest, headLength}
	// RequestBody is in the middle of the request's body.
	RequestBody = Place{inRequest, func(m []byte, n int) int { return (headLength(m, n) + n) / 2 }}
	// RequestLastByte is before the last byte of the request.
	RequestLastByte = Place{inRequest, func(_ []byte, n int) int { return n - 1 }}
	// Request is behind the whole request. The app has it and answers, to nobody yet.
	Request = Place{inAnswer, func([]byte, int) int { return 0 }}
	// StatusLine is behind the answer's first bytes, "HTTP/1.1 2".
	StatusLine = Answered(10)
	// Headers is in the middle of a header's name.
	Headers = Place{inAnswer, func(m []byte, _ int) int { return bytes.Index(m, []byte("\r\n")) + 6 }}
	// Head is behind the blank line of the answer, before its body.
	Head = Place{inAnswer, headLength}
	// Body is in the middle of the answer's body.
	Body = Place{inAnswer, func(m []byte, n int) int { return (headLength(m, n) + n) / 2 }}
	// LastByte is before the last byte of the answer: of its body, or of the mark that ends a chunked one.
	LastByte = Place{inAnswer, func(_ []byte, n int) int { return n - 1 }}
	// Answer is behind the complete answer.
	Answer = Place{}
)

// Requested is behind the first n bytes of the request.
func Requested(n int) Place { return Place{inRequest, func([]byte, int) int { return n }} }

// Answered is behind the first n bytes of the answer.
func Answered(n int) Place { return Place{inAnswer, func([]byte, int) int { return n }} }

// in gives the place's offset in a message of which at least the head is known, and its length.
func (p Place) in(message []byte, length int) int {
	if p.offset == nil {
		return length
	}
	return min(max(p.offset(message, length), 0), length)
}

// headLength is the length of a message up to its blank line and with it.
func headLength(m []byte, length int) int {
	if i := bytes.Index(m, []byte("\r\n\r\n")); i >= 0 {
		return i + 4
	}
	return length
}

// Instead answers with text, whatever the app said.
func Instead(text string) func([]byte) []byte {
	return func([]byte) []byte { return []byte(text) }
}

// Before puts text in front of the app's answer: a 1xx, say.
func Before(text string) func([]byte) []byte {
	return func(app []byte) []byte { return append([]byte(text), app...) }
}

// Behind puts text behind the app's answer: a second one, say.
func Behind(text string) func([]byte) []byte {
	return func(app []byte) []byte { return append(bytes.Clone(app), text...) }
}

// Unframed takes the answer's length away: the end of the connection is its end.
func Unframed(app []byte) []byte {
	head, body, _ := bytes.Cut(app, []byte("\r\n\r\n"))
	var kept [][]byte
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		if !bytes.HasPrefix(bytes.ToLower(line), []byte("content-length:")) {
			kept = append(kept, line)
		}
	}
	return append(append(bytes.Join(kept, []byte("\r\n")), "\r\nConnection: close\r\n\r\n"...), body...)
}
