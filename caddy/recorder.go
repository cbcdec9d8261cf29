package caddy

import (
	"net/http"
	"strings"

	"github.com/einlass/einlass/dedup"
)

// recorder takes the app's answer in place of the sender's connection, up to a bounded body. It has a header
// map of its own: an answer that breaks off must leave no trace on what the sender gets instead.
type recorder struct {
	header  http.Header
	status  int // 0 until a final status was written
	body    []byte
	limit   int64
	dropped bool
	odd     bool // a status that is none was written
}

func newRecorder(limit int64) *recorder {
	return &recorder{header: make(http.Header), limit: limit}
}

// Header gives the recorder's own header map.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader keeps the first final status; informational ones (1xx) are not an answer. 101 ends the exchange
// without one, which the missing status tells; so does a status that is none.
func (w *recorder) WriteHeader(status int) {
	if status < 100 { // net/http lets an app's 000 through
		w.odd = true
	}
	if w.status == 0 && status >= 200 {
		w.status = status
	}
}

// Write keeps the body up to the limit; a longer one is dropped whole.
func (w *recorder) Write(p []byte) (int, error) {
	if !w.odd {
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case w.dropped:
	case int64(len(w.body))+int64(len(p)) > w.limit:
		w.drop()
	default:
		w.body = append(w.body, p...)
	}
	return len(p), nil
}

// drop gives the body up.
func (w *recorder) drop() { w.body, w.dropped = nil, true }

// Flush does nothing: an answer is given whole, after it is on disk.
func (w *recorder) Flush() {}

// answer is what of the app's answer is stored and given, to the first delivery and to every repeat.
func (w *recorder) answer(allowed []string) dedup.Answer {
	a := dedup.Answer{Status: w.status, Body: w.body, BodyDropped: w.dropped}
	// The gate asks for no encoding. A body that has one all the same is unreadable without its name.
	if coding := w.header.Get("Content-Encoding"); coding != "" && len(w.body) > 0 && safeHeaderValue(coding) {
		a.Header = append(a.Header, dedup.Field{Name: "Content-Encoding", Value: coding})
	}
	for _, name := range allowed {
		for _, value := range w.header.Values(name) {
			if safeHeaderValue(value) {
				a.Header = append(a.Header, dedup.Field{Name: http.CanonicalHeaderKey(name), Value: value})
			}
		}
	}
	return a
}

// longestHeader bounds the value of a header that is kept, in bytes; a longer one is left out.
const longestHeader = 8 << 10

// safeHeaderValue refuses what could end a header early when it is given again (response splitting).
func safeHeaderValue(v string) bool {
	return len(v) <= longestHeader && !strings.ContainsAny(v, "\r\n\x00")
}
