package verifier

import (
	"crypto/subtle"
	"hash"
	"regexp"
	"strings"
	"time"
)

// hmacVerifier is an HMAC declaration compiled with one source's secrets. It is
// not changed after New.
type hmacVerifier struct {
	header     string
	format     Format
	prefix     string
	list       list
	encoding   Encoding
	content    template
	timestamp  Timestamp
	tolerance  time.Duration
	idHeader   string
	idPattern  *regexp.Regexp
	required   []string
	digestSize int
	keys       []hmacKey
}

// Headers lists the headers judged, the signature's first.
func (v *hmacVerifier) Headers() []string {
	names := []string{v.header}
	for _, name := range []string{v.timestamp.Header, v.idHeader} {
		if name != "" {
			names = append(names, name)
		}
	}
	return append(names, v.required...)
}

// Begin checks, in this order: all headers there and single, their form, the
// window, an active secret.
func (v *hmacVerifier) Begin(req Request) (Check, error) {
	c := &hmacCheck{v: v}
	timestamp, id, err := v.read(req, c)
	if err != nil {
		return nil, err
	}
	if v.timestamp.declared() {
		signed, ok := v.timestamp.parse(timestamp)
		if !ok {
			return nil, refuse(ReasonMalformedHeader, "%s is not a plain decimal number of the expected length", v.timestamp.name())
		}
		if err := v.timestamp.inWindow(signed, req.Now, v.tolerance); err != nil {
			return nil, err
		}
		c.result.Time, c.result.Skew = signed, req.Now.Sub(signed)
	}
	c.macs = c.macSpace[:0]
	for i, key := range v.keys {
		if key.active(req.Now) {
			c.macs = append(c.macs, activeMAC{key.take(), i})
		}
	}
	if len(c.macs) == 0 {
		return nil, refuse(ReasonNoActiveSecret, "all %d configured secrets have expired", len(v.keys))
	}
	c.feed(render(c.scratch[:0], v.content.before, req, timestamp, id))
	c.after = render(nil, v.content.after, req, timestamp, id)
	return c, nil
}

// read takes from the headers what the scheme needs: the well-formed signatures
// into c, the texts of timestamp and id.
func (v *hmacVerifier) read(req Request, c *hmacCheck) (timestamp, id string, err error) {
	value, err := single(req.Header, v.header, maxSignatureHeader)
	if err != nil {
		return "", "", err
	}
	if v.timestamp.Header != "" {
		if timestamp, err = single(req.Header, v.timestamp.Header, maxHeader); err != nil {
			return "", "", err
		}
	}
	if v.idHeader != "" {
		if id, err = single(req.Header, v.idHeader, maxHeader); err != nil {
			return "", "", err
		}
		if !v.idPattern.MatchString(id) {
			return "", "", refuse(ReasonMalformedHeader, "%s is not of the scheme's form", v.idHeader)
		}
	}
	for _, name := range v.required {
		if _, err = single(req.Header, name, maxHeader); err != nil {
			return "", "", err
		}
	}
	candidates := c.candidateSpace[:0]
	switch v.format {
	case FormatList:
		var field string
		if candidates, field, err = v.list.parse(v.header, value, candidates); err != nil {
			return "", "", err
		}
		if v.timestamp.Field != "" {
			timestamp = field
		}
	case FormatPrefix:
		digest, ok := strings.CutPrefix(value, v.prefix)
		if !ok {
			return "", "", refuse(ReasonMalformedHeader, "%s does not begin with %q", v.header, v.prefix)
		}
		candidates = append(candidates, digest)
	default:
		candidates = append(candidates, value)
	}
	c.signatures = candidates[:0]
	for _, s := range candidates {
		if v.encoding.wellFormed(s, v.digestSize) {
			c.signatures = append(c.signatures, s)
		}
	}
	if len(c.signatures) == 0 {
		return "", "", refuse(ReasonMalformedHeader, "%s holds no signature of %s", v.header, v.encoding.describe(v.digestSize))
	}
	return timestamp, id, nil
}

// activeMAC is the MAC of one active secret, in progress.
type activeMAC struct {
	mac    hash.Hash
	secret int // position as configured
}

// hmacCheck is one delivery. Its arrays are there so that the usual delivery
// takes one allocation.
type hmacCheck struct {
	v          *hmacVerifier
	signatures []string
	macs       []activeMAC // nil once finished
	after      []byte      // content behind the body
	result     Result

	candidateSpace [4]string
	macSpace       [2]activeMAC
	scratch        [192]byte
	sum            [64]byte
	text           [128]byte
	given          [128]byte
}

// Write feeds the body to every MAC, unless the scheme does not sign it.
func (c *hmacCheck) Write(p []byte) (int, error) {
	if c.v.content.body {
		c.feed(p)
	}
	return len(p), nil
}

func (c *hmacCheck) feed(p []byte) {
	for _, m := range c.macs {
		m.mac.Write(p)
	}
}

// Finish compares every signature with every secret's MAC: no early exit, so
// that time tells neither which matched nor how many there are.
func (c *hmacCheck) Finish([]byte) (Result, error) {
	if c.macs == nil {
		return Result{}, refuse(ReasonMismatch, "the check was finished before")
	}
	c.feed(c.after)
	matched := -1
	for _, m := range c.macs {
		text := c.v.encoding.append(c.text[:0], m.mac.Sum(c.sum[:0]))
		for _, s := range c.signatures {
			given := append(c.given[:0], s...)
			if subtle.ConstantTimeCompare(text, given) == 1 && matched < 0 {
				matched = m.secret
			}
		}
		c.v.keys[m.secret].give(m.mac)
	}
	macs := len(c.macs)
	c.macs = nil
	if matched < 0 {
		return Result{}, refuse(ReasonMismatch, "%s against %s: none matches the received bytes",
			count(len(c.signatures), "signature"), count(macs, "active secret"))
	}
	c.result.Secret = matched
	return c.result, nil
}

// SignsHeader implements [HeaderSigner].
func (v *hmacVerifier) SignsHeader(name string) bool {
	return v.content.uses(partHeader, name) ||
		name == v.idHeader && v.content.uses(partID, "") ||
		name == v.timestamp.Header && v.content.uses(partTimestamp, "")
}
