package caddy

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// firstRead is the buffer a body of unknown length starts with; a declared length is trusted up to trustLength,
// so that a header alone cannot make the gate allocate max_body.
const (
	firstRead   = 4 << 10
	trustLength = 256 << 10
)

var errBodySize = errors.New("body is above max_body")

// readBody reads the body once, as bytes, and feeds the verifier while they arrive.
func (h *Handler) readBody(d *delivery) *reply {
	control := http.NewResponseController(d.w)
	// A writer without deadlines (tests, odd wrappers) leaves Caddy's own idle timeout in charge.
	limited := control.SetReadDeadline(time.Now().Add(d.set.readTimeout)) == nil
	body, err := readAll(d.r.Body, d.check, d.r.ContentLength, d.set.maxBody)
	d.report.read = time.Since(d.began)
	if err != nil {
		return d.unread(refuseBody(err))
	}
	if limited {
		_ = control.SetReadDeadline(time.Time{})
	}
	d.body = body
	return nil
}

// refuseBody says what was wrong with a body that could not be read to its end.
func refuseBody(err error) *reply {
	switch {
	case errors.Is(err, errBodySize):
		return refuse(codeBodySize, err.Error())
	case tooLarge(err):
		return refuse(codeBodySize, "the body is above the limit of a handler before the gate")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(codeBodyTimeout, "the body did not arrive within read_timeout")
	default:
		return refuse(codeBodyIncomplete, "the body ended before it was complete")
	}
}

// readAll reads r to its end, at most limit bytes, and writes each piece to feed as it comes.
func readAll(r io.Reader, feed io.Writer, declared, limit int64) ([]byte, error) {
	if r == nil || r == http.NoBody {
		return nil, nil
	}
	size := int64(firstRead)
	if declared >= 0 {
		size = min(declared, trustLength) + 1 // one more lets the last read see the end without growing
	}
	buf := make([]byte, 0, size)
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		piece := buf[len(buf) : len(buf)+n]
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > limit {
			return nil, errBodySize
		}
		_, _ = feed.Write(piece) // a Check never fails to take bytes
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
		if len(buf) == cap(buf) {
			grown := make([]byte, len(buf), min(int64(cap(buf))*2, limit+1)+1)
			copy(grown, buf)
			buf = grown
		}
	}
}

// lingering is how long a connection is read on after a refusal, for a body that is on its way: closed at once, it
// would be reset, and the sender might lose the answer.
const lingering = time.Second

// unread makes an HTTP/1 connection end after an answer that was decided before the body was read to its end: the
// rest of the body is not a request. Without this the server would not even write the answer before it has the
// body, which a sender can hold back.
func unread(w http.ResponseWriter, r *http.Request, rep *reply) *reply {
	if r.ProtoMajor == 1 && r.ContentLength != 0 {
		rep.header.Set("Connection", "close")
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(lingering))
	}
	return rep
}

func (d *delivery) unread(rep *reply) *reply { return unread(d.w, d.r, rep) }

// tooLarge tells the error of a limit that was set before the gate (`request_body`).
func tooLarge(err error) bool {
	var limit *http.MaxBytesError
	var refused caddyhttp.HandlerError
	return errors.As(err, &limit) || errors.As(err, &refused) && refused.StatusCode == http.StatusRequestEntityTooLarge
}
