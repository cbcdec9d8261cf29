package verifier

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"
)

// DefaultTolerance is used where a scheme has a time and names no window.
const DefaultTolerance = 5 * time.Minute

// Format is how a signature header holds its signature.
type Format string

// All formats.
const (
	// FormatPlain: the digest alone. The default.
	FormatPlain Format = "plain"
	// FormatPrefix: HMAC.Prefix and then the digest ("sha256=ab12").
	FormatPrefix Format = "prefix"
	// FormatList: named entries, of which any that counts may match
	// ("t=1,v1=ab,v1=cd"; "v1,ab v1,cd").
	FormatList Format = "list"
)

// HMAC declares a keyed-digest scheme as data. It is a Family.
type HMAC struct {
	// Header is the header with the signature.
	Header string
	// Format is how the signature is written in it. Default: plain.
	Format Format
	// Prefix is the text before the digest, with FormatPrefix. It may be text
	// of any kind, and its letter case counts.
	Prefix string
	// Separator is the text between two entries, with FormatList. Default: ",".
	Separator string
	// Assign is the text between an entry's name and value, with FormatList.
	// Default: "=".
	Assign string
	// Field is the name of the entries that count, with FormatList; all others
	// are ignored. Default: "v1".
	Field string
	// Bare: the entries of the list are signatures without a name, instead of
	// Field; only the timestamp's has one.
	Bare bool
	// Blanks: with FormatList, blanks around an entry do not count, as in
	// "v1=ab12, v1=cd34".
	Blanks bool
	// Digest is the hash. Default: sha256.
	Digest Digest
	// Encoding is how the digest is written, exactly. Default: hex (lower-case).
	Encoding Encoding
	// Key says how a secret becomes key bytes. Default: utf8.
	Key KeyEncoding
	// KeySize is the number of key bytes the scheme demands; 0 = any.
	KeySize int
	// Content is the signed content: text with {body}, {timestamp}, {id},
	// {url}, {method} and {header.Name}. Default: "{body}".
	Content string
	// Timestamp is where the signed time is; zero = the scheme has none. It
	// must be part of Content: an unsigned time protects nothing.
	Timestamp Timestamp
	// ID is where the signed delivery id is; zero = none. It must be part of
	// Content.
	ID ID
	// Required are further headers without which, or with more than one value
	// of which, a delivery is refused.
	Required []string
	// Tolerance is the window of the signed time in each direction. Default,
	// where there is a time: 5 minutes.
	Tolerance time.Duration
}

// ID says where a scheme's signed delivery id is.
type ID struct {
	// Header is the header that holds it.
	Header string
	// Pattern is a regular expression that the whole id must match. Default:
	// 1 to 256 printable ASCII characters without a space.
	Pattern string
}

// defaultIDPattern keeps ids fit for logs and keys.
const defaultIDPattern = `[!-~]{1,256}`

// New compiles the scheme. It refuses a declaration that is inconsistent or
// would verify less than it seems to, having no secret, and secrets that are
// not of the scheme's form.
func (h HMAC) New(o Options) (Verifier, error) {
	v, err := h.compile()
	if err != nil {
		return nil, err
	}
	if err := v.setTolerance(h.Tolerance, o.Tolerance); err != nil {
		return nil, err
	}
	if len(o.Secrets) == 0 {
		return nil, errors.New("no secret")
	}
	newHash, err := h.Digest.new()
	if err != nil {
		return nil, err
	}
	v.digestSize = newHash().Size()
	for i, s := range o.Secrets {
		key, err := h.Key.decode(s.Reveal(), h.KeySize)
		if err != nil {
			return nil, fmt.Errorf("secret %d of %d: %w", i+1, len(o.Secrets), err)
		}
		v.keys = append(v.keys, newHMACKey(newHash, key, s.Until()))
	}
	return v, nil
}

// compile resolves defaults and checks the declaration alone.
func (h HMAC) compile() (*hmacVerifier, error) {
	v := &hmacVerifier{
		header:    http.CanonicalHeaderKey(h.Header),
		format:    cmp.Or(h.Format, FormatPlain),
		prefix:    h.Prefix,
		encoding:  cmp.Or(h.Encoding, EncodingHex),
		timestamp: h.Timestamp,
	}
	if !validHeaderName(h.Header) {
		return nil, fmt.Errorf("%q is not the name of a header for the signature", h.Header)
	}
	if err := v.encoding.validate(); err != nil {
		return nil, err
	}
	if err := v.setFormat(h); err != nil {
		return nil, err
	}
	var err error
	if v.content, err = parseTemplate(cmp.Or(h.Content, "{body}")); err != nil {
		return nil, err
	}
	if err := v.setTimestamp(h.Timestamp); err != nil {
		return nil, err
	}
	if err := v.setID(h.ID); err != nil {
		return nil, err
	}
	return v, v.setRequired(h.Required)
}

func (v *hmacVerifier) setFormat(h HMAC) error {
	switch v.format {
	case FormatPlain:
	case FormatPrefix:
		if h.Prefix == "" {
			return errors.New("format prefix needs the prefix")
		}
	case FormatList:
		v.list = list{
			separator: cmp.Or(h.Separator, ","),
			assign:    cmp.Or(h.Assign, "="),
			field:     cmp.Or(h.Field, "v1"),
			timeField: h.Timestamp.Field,
			blanks:    h.Blanks,
		}
		if h.Bare && h.Field != "" {
			return errors.New("format list: the entries are bare or have a field name, not both")
		}
		if v.list.field == v.list.timeField || v.list.separator == v.list.assign {
			return errors.New("format list: signature and timestamp need two field names, separator and assignment two texts")
		}
		if h.Bare {
			v.list.field = ""
		}
	default:
		return fmt.Errorf("unknown format %q: plain, prefix or list is expected", string(h.Format))
	}
	return nil
}

func (v *hmacVerifier) setTimestamp(t Timestamp) error {
	v.timestamp.Unit = cmp.Or(t.Unit, UnitSeconds)
	v.timestamp.Header = http.CanonicalHeaderKey(t.Header)
	switch {
	case v.timestamp.Unit != UnitSeconds && v.timestamp.Unit != UnitMilliseconds:
		return fmt.Errorf("unknown timestamp unit %q: s or ms is expected", string(t.Unit))
	case t.Header != "" && t.Field != "":
		return errors.New("the timestamp is in a header or in a field, not in both")
	case t.Header != "" && !validHeaderName(t.Header):
		return fmt.Errorf("%q is not the name of a header for the timestamp", t.Header)
	case t.Field != "" && v.format != FormatList:
		return errors.New("a timestamp field needs format list")
	case t.Digits < 0 || t.Digits > maxTimestampDigits:
		return fmt.Errorf("a timestamp has 1 to %d digits", maxTimestampDigits)
	}
	signed := v.content.uses(partTimestamp, "") || t.Header != "" && v.content.uses(partHeader, v.timestamp.Header)
	if t.declared() && !signed {
		return errors.New("the timestamp is not part of the signed content, so it would protect nothing")
	}
	if !t.declared() && v.content.uses(partTimestamp, "") {
		return errors.New("content: {timestamp} needs to be told where the timestamp is")
	}
	return nil
}

func (v *hmacVerifier) setID(id ID) error {
	if id.Header == "" {
		if v.content.uses(partID, "") {
			return errors.New("content: {id} needs to be told which header has the id")
		}
		return nil
	}
	v.idHeader = http.CanonicalHeaderKey(id.Header)
	if !validHeaderName(id.Header) {
		return fmt.Errorf("%q is not the name of a header for the id", id.Header)
	}
	if !v.content.uses(partID, "") && !v.content.uses(partHeader, v.idHeader) {
		return errors.New("the id is not part of the signed content")
	}
	pattern, err := regexp.Compile(`\A(?:` + cmp.Or(id.Pattern, defaultIDPattern) + `)\z`)
	if err != nil {
		return fmt.Errorf("the pattern of the id: %w", err)
	}
	v.idPattern = pattern
	return nil
}

func (v *hmacVerifier) setRequired(names []string) error {
	for _, name := range append(v.content.headers(), names...) {
		if !validHeaderName(name) {
			return fmt.Errorf("%q is not the name of a required header", name)
		}
		v.required = append(v.required, http.CanonicalHeaderKey(name))
	}
	return nil
}

func (v *hmacVerifier) setTolerance(own, override time.Duration) error {
	switch {
	case own < 0 || override < 0:
		return errors.New("the tolerance is negative")
	case !v.timestamp.declared() && (own != 0 || override != 0):
		return errors.New("the scheme has no time, so a tolerance has no effect")
	}
	v.tolerance = cmp.Or(override, own, DefaultTolerance)
	return nil
}
