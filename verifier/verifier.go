package verifier

import (
	"io"
	"net/http"
	"time"
)

// Request is one delivery as a scheme sees it, without its body.
type Request struct {
	// Method is the HTTP method, in capitals.
	Method string
	// URL is the full URL as the sender sees it; only schemes that sign it read it.
	URL string
	// Header holds the request headers under their canonical names, as net/http gives them.
	Header http.Header
	// Now is the time against which the signed time is judged.
	Now time.Time
}

// Verifier is a scheme together with one source's secrets. It is safe for
// concurrent use.
type Verifier interface {
	// Begin judges what the headers alone tell (present, single, well-formed,
	// in the window), before a byte of the body is read. Errors are *Error.
	Begin(Request) (Check, error)
}

// Check is one delivery under verification. The body's bytes are written to it
// as they arrive. It belongs to one goroutine and may be dropped unfinished.
type Check interface {
	// Write never fails and keeps nothing of p.
	io.Writer
	// Finish is called once, after the last byte. body is the whole body, for
	// schemes that must parse it; others look only at what was written.
	// Errors are *Error. A second call is refused.
	Finish(body []byte) (Result, error)
}

// Result is what an accepted delivery was found to be.
type Result struct {
	// Secret is the position of the matching secret as configured, from 0; -1
	// where the scheme has none.
	Secret int
	// Time is the signed time; zero where the scheme has none.
	Time time.Time
	// Skew is Now - Time: positive for the past; zero where the scheme has no time.
	Skew time.Duration
}

// Options are one source's settings of a scheme.
type Options struct {
	// Secrets are all accepted secrets; several during a rotation.
	Secrets []Secret
	// Tolerance is how far the signed time may be from now, in either
	// direction. 0 = the scheme's own. Negative is an error, and so is any
	// value where the scheme has no time.
	Tolerance time.Duration
}

// Family is a kind of scheme declared as data.
type Family interface {
	// New compiles the scheme with one source's secrets. Its errors are for the
	// operator who wrote the configuration and never hold a secret.
	New(Options) (Verifier, error)
}

// HeaderSigner is implemented by verifiers that can tell which headers a
// signature covers. An id in a header that it does not cover can be changed by
// whoever has captured a delivery.
type HeaderSigner interface {
	// SignsHeader reports whether the header is part of what is signed. name is
	// canonical.
	SignsHeader(name string) bool
}

// Signer is implemented by verifiers that can also sign, for test deliveries.
type Signer interface {
	// Sign returns the headers to set on req so that its own verifier accepts
	// it, made with the first secret and, where the scheme has a time, with
	// req.Now. Headers the scheme only reads (a given delivery id, required
	// metadata) are taken from req; a missing id is invented.
	Sign(req Request, body []byte) (http.Header, error)
}

// HeaderReader is implemented by verifiers that can name the headers they
// judge by, the signature's first, in canonical form. A preset with several
// variants needs it to tell them apart.
type HeaderReader interface {
	Headers() []string
}
