package integration

import (
	"net/http"
	"strings"

	"github.com/einlass/einlass/integration/internal/fault"
)

// Ends of a first delivery.
const (
	committed = "committed" // the sender has the app's answer
	refused   = "refused"   // the sender has the app's own failure, and the event is free
	aborted   = "aborted"   // certainly not sent: the event is free
	inDoubt   = "in doubt"  // nobody knows
	either    = "either"    // two packets race: aborted, in doubt or committed, and the receipt must agree with it
)

// hop is one event's way over a network that fails.
type hop struct {
	name   string
	faults []fault.Fault // of the attempt, and of what comes before it on its connection
	end    string
	seen   int // how often the app gets the attempt; -1: at most once

	app    func(*network) http.HandlerFunc // default: done
	text   string                          // of the event, default: its id; it has to differ from every other's
	header http.Header                     // of the delivery
	warm   bool                            // another event comes first, and leaves its connection open
	stalls bool                            // the fault ends when it was reached
	nobody bool                            // nobody listens where the attempt goes
	alone  bool                            // the connection is left in a state that another event must not meet
	other  bool                            // the answer that counts is not what the app wrote, or not all of it
}

// marker stands in what no log may show.
const marker = "made-up-nonsense"

var (
	badEnds  = map[string]fault.Action{"closed": fault.Close, "reset": fault.Reset, "stalled": fault.Stall, "vanished": fault.Vanish}
	asking   = map[string]fault.Place{"the first byte of the request": fault.Requested(1), "100 bytes of the request": fault.Requested(100), "the request's head": fault.RequestHead, "half of the request's body": fault.RequestBody, "all but the last byte of the request": fault.RequestLastByte}
	answered = map[string]fault.Place{"the whole request": fault.Request, "half of the status line": fault.StatusLine, "half of the headers": fault.Headers, "the headers": fault.Head, "half of the body": fault.Body, "all but the last byte": fault.LastByte}
)

// hops is the table: what happens on the hop to the app, and what the attempt comes to.
func hops() []hop {
	var all []hop
	for how, action := range badEnds {
		for where, place := range asking {
			all = append(all, hop{name: how + " after " + where, faults: at(place, action), end: inDoubt})
		}
		for where, place := range answered {
			all = append(all,
				hop{name: how + " after " + where + ", before the answer's end", faults: at(place, action), end: inDoubt, seen: 1},
				hop{name: how + " after " + where + " of a chunked answer", faults: at(place, action), end: inDoubt, seen: 1, app: chunked})
		}
		all = append(all,
			hop{name: how + " after the complete answer", faults: at(fault.Answer, action), end: committed, seen: 1, alone: true},
			hop{name: how + " after the complete chunked answer", faults: at(fault.Answer, action), end: committed, seen: 1, app: chunked, alone: true},
			hop{name: how + " in the middle of a large request", faults: at(fault.RequestBody, action), end: inDoubt, text: large(how)},
			hop{name: how + " in the body of a failure", faults: at(fault.Body, action), end: inDoubt, seen: 1, app: failing},
			// Connections that were used before: Go's transport sends a request again on another, if it may.
			hop{name: how + " on a used connection after the request's head", faults: after(fault.RequestHead, action), end: inDoubt, warm: true},
			hop{name: how + " on a used connection after the request", faults: after(fault.Request, action), end: inDoubt, seen: 1, warm: true},
			hop{name: how + " on a used connection after an empty request that calls itself idempotent", faults: after(fault.Request, action), end: inDoubt, seen: 1, warm: true, text: "empty", header: http.Header{"Idempotency-Key": {how}, "X-Idempotency-Key": {how}}},
		)
	}
	for where, place := range asking {
		all = append(all, hop{name: "delayed after " + where, faults: at(place, fault.Stall), end: committed, seen: 1, stalls: true})
	}
	for where, place := range answered {
		all = append(all, hop{name: "delayed after " + where + ", before the answer's end", faults: at(place, fault.Stall), end: committed, seen: 1, stalls: true})
	}
	return append(append(append(all, dials()...), idles()...), oddities()...)
}

// dials are faults before a byte was read.
func dials() []hop {
	tls := http.Header{"Test-Hop": {"tls"}}
	return []hop{
		{name: "nobody listens", nobody: true, end: aborted},
		{name: "closed at once", faults: at(fault.Accepted, fault.Close), end: either},
		{name: "reset at once", faults: at(fault.Accepted, fault.Reset), end: either},
		{name: "accepted and stalled", faults: at(fault.Accepted, fault.Stall), end: inDoubt},
		{name: "accepted and delayed", faults: at(fault.Accepted, fault.Stall), end: committed, seen: 1, stalls: true},
		{name: "answered before a byte was read", faults: say(fault.Accepted, fault.Interrupt, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno"), end: either, other: true},
		{name: "closed in the TLS handshake", faults: at(fault.Accepted, fault.Close), end: aborted, header: tls},
		{name: "reset in the TLS handshake", faults: at(fault.Accepted, fault.Reset), end: aborted, header: tls},
		{name: "stalled in the TLS handshake", faults: at(fault.Accepted, fault.Stall), end: aborted, header: tls},
		{name: "no TLS spoken", faults: say(fault.Accepted, fault.Interrupt, "HTTP/1.0 400 Bad Request\r\n\r\n"), end: aborted, header: tls},
	}
}

// idles are connections that die between two requests, whether the gate has noticed it or not.
func idles() []hop {
	return []hop{
		{name: "closed between two requests", faults: at(fault.Answer, fault.Close), end: either, seen: -1, warm: true},
		{name: "reset between two requests", faults: at(fault.Answer, fault.Reset), end: either, seen: -1, warm: true},
		{name: "vanished between two requests", faults: at(fault.Answer, fault.Vanish), end: inDoubt, warm: true},
		{name: "closed before an empty request that calls itself idempotent", faults: at(fault.Answer, fault.Close), end: either, seen: -1, warm: true, text: "empty", header: http.Header{"Idempotency-Key": {"k"}}},
		{name: "408 between two requests", faults: behind("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n", fault.Close), end: either, seen: -1, warm: true},
		{name: "a second answer behind the one before", faults: behind("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstale", fault.None), end: either, seen: -1, warm: true},
	}
}

// oddities are answers that no app should give.
func oddities() []hop {
	const early = "HTTP/1.1 500 Early\r\nConnection: close\r\nContent-Length: 6\r\nContent-Type: text/plain\r\n\r\nbroken"
	all := []hop{
		{name: "trickled", faults: []fault.Fault{{Bytes: true}}, end: committed, seen: 1},
		{name: "trickled in chunks", faults: []fault.Fault{{Bytes: true}}, end: committed, seen: 1, app: chunked},
		{name: "an early 500", faults: say(fault.RequestHead, fault.Interrupt, early), end: refused},
		{name: "an early 500 in the middle of a large request", faults: say(fault.RequestBody, fault.Interrupt, early), end: refused, text: large("early")},
		{name: "an early 200 in the middle of a large request", faults: say(fault.RequestBody, fault.Interrupt, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"), end: committed, text: large("early 200"), other: true},
		{name: "a 500", end: refused, seen: 1, app: failing},
		{name: "100 before the answer", faults: say(fault.Answer, fault.None, "HTTP/1.1 100 Continue\r\n\r\n"), end: committed, seen: 1},
		{name: "102 and 103 before the answer", faults: say(fault.Answer, fault.None, "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"), end: committed, seen: 1},
		{name: "a second answer behind the first", faults: behind("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstale", fault.None), end: committed, seen: 1},
		{name: "no length, and closed at the end", faults: []fault.Fault{{Answer: fault.Unframed, Action: fault.Close}}, end: committed, seen: 1},
		// Nothing in such an answer tells its end from a cut (RFC 9112, section 8).
		{name: "no length, and closed in the body", faults: []fault.Fault{{Answer: fault.Unframed, Action: fault.Close, At: fault.Body}}, end: committed, seen: 1, other: true},
		{name: "no length, and reset in the body", faults: []fault.Fault{{Answer: fault.Unframed, Action: fault.Reset, At: fault.Body}}, end: inDoubt, seen: 1},
		{name: "said to be committed, and closed in the body", faults: at(fault.Body, fault.Close), end: committed, seen: 1, app: saying("committed", http.StatusCreated), other: true, alone: true},
		{name: "said to be committed, and reset in the headers", faults: at(fault.Answered(120), fault.Reset), end: inDoubt, seen: 1, app: saying("committed", http.StatusCreated), alone: true},
		{name: "said to be rejected, and vanished in the body", faults: at(fault.Body, fault.Vanish), end: committed, seen: 1, app: saying("rejected", http.StatusUnprocessableEntity), other: true, alone: true},
		{name: "said to be aborted, and reset in the body", faults: at(fault.Body, fault.Reset), end: aborted, seen: 1, app: saying("aborted", http.StatusOK), alone: true},
		{name: "a gzip stream that breaks off", end: inDoubt, seen: 1, app: halfZipped},
	}
	for name, text := range map[string]string{
		"103, then nothing":          "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n",
		"101":                        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + marker + "\r\n\r\n",
		"another protocol":           "SSH-2.0-" + marker + "\r\n",
		"zeros":                      strings.Repeat("\x00", 100) + marker,
		"no status":                  "HTTP/1.1 " + marker + "\r\n\r\n",
		"no header":                  "HTTP/1.1 200 OK\r\n" + marker + "\r\n\r\n",
		"a negative length":          "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n" + marker,
		"two lengths":                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n" + marker,
		"a chunk without a length":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + marker + "\r\n",
		"an unknown coding":          "HTTP/1.1 200 OK\r\nTransfer-Encoding: " + marker + "\r\n\r\n0\r\n\r\n",
		"headers without an end":     "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Nonsense: "+strings.Repeat(marker, 500)+"\r\n", 2000),
		"a status line that is none": "200 OK\r\n\r\n",
	} {
		all = append(all, hop{name: "instead of an answer: " + name, faults: []fault.Fault{{Answer: fault.Instead(text), Action: fault.Close}}, end: inDoubt, seen: 1})
	}
	return all
}

func at(p fault.Place, a fault.Action) []fault.Fault { return []fault.Fault{{At: p, Action: a}} }

// after is at for the second exchange of a connection.
func after(p fault.Place, a fault.Action) []fault.Fault { return []fault.Fault{{}, {At: p, Action: a}} }

// say is at with a text: the answer itself where the request is interrupted, else what comes before it.
func say(p fault.Place, a fault.Action, text string) []fault.Fault {
	return []fault.Fault{{At: p, Action: a, Answer: fault.Before(text)}}
}

// behind is an answer with something behind it.
func behind(text string, a fault.Action) []fault.Fault {
	return []fault.Fault{{Action: a, Answer: fault.Behind(text)}}
}

// large is a body that fits into no socket's buffers.
func large(name string) string { return name + strings.Repeat(" and more", 6<<20/9) }
