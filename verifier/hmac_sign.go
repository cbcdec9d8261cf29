package verifier

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Sign returns the signature, timestamp and id headers for req. It implements
// Signer.
func (v *hmacVerifier) Sign(req Request, body []byte) (http.Header, error) {
	out := http.Header{}
	var timestamp, id string
	if v.timestamp.declared() {
		timestamp = v.timestamp.format(req.Now)
		if _, ok := v.timestamp.parse(timestamp); !ok {
			return nil, errors.New("the time to sign cannot be written in the scheme's form")
		}
		if v.timestamp.Header != "" {
			out.Set(v.timestamp.Header, timestamp)
		}
	}
	if v.idHeader != "" {
		if id = req.Header.Get(v.idHeader); id == "" {
			id = "test-" + strings.ToLower(rand.Text())
		}
		if !v.idPattern.MatchString(id) {
			return nil, fmt.Errorf("the delivery id in %s is not of the scheme's form", v.idHeader)
		}
		out.Set(v.idHeader, id)
	}
	// Content may hold any header, these new ones among them.
	signed := req
	signed.Header = req.Header.Clone()
	if signed.Header == nil {
		signed.Header = http.Header{}
	}
	for name, values := range out {
		signed.Header[name] = values
	}
	for _, name := range v.content.headers() {
		if _, err := single(signed.Header, name, maxHeader); err != nil {
			return nil, fmt.Errorf("a signed header: %w", err)
		}
	}
	mac := v.keys[0].take()
	mac.Write(render(nil, v.content.before, signed, timestamp, id))
	if v.content.body {
		mac.Write(body)
	}
	mac.Write(render(nil, v.content.after, signed, timestamp, id))
	digest := string(v.encoding.append(nil, mac.Sum(nil)))
	v.keys[0].give(mac)
	out.Set(v.header, v.write(digest, timestamp))
	return out, nil
}

// write puts a digest into the signature header's form.
func (v *hmacVerifier) write(digest, timestamp string) string {
	switch v.format {
	case FormatPrefix:
		return v.prefix + digest
	case FormatList:
		entry := digest
		if v.list.field != "" {
			entry = v.list.field + v.list.assign + digest
		}
		if v.list.timeField != "" {
			entry = v.list.timeField + v.list.assign + timestamp + v.list.separator + entry
		}
		return entry
	default:
		return digest
	}
}

// count writes a number with its noun.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
