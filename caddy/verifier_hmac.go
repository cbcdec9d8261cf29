package caddy

import (
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/einlass/einlass/verifier"
)

func init() {
	caddy.RegisterModule(new(HMAC))
}

// HMAC verifies any keyed digest (RFC 2104) whose form is written out here, for senders without a preset. What
// it cannot know about the sender (`event_id`, deadlines) stands beside it in the gate's block.
type HMAC struct {
	Keys

	// The header that holds the signature. Required.
	Header string `json:"header,omitempty"`

	// How the signature stands in it: `plain`, `prefix` or `list`. Default: `plain`, or `prefix` where
	// prefix is set.
	Format string `json:"format,omitempty"`

	// The text before the digest, such as `sha256=`, with format prefix.
	Prefix string `json:"prefix,omitempty"`

	// The name of the list entries that are signatures, such as `v1` in `t=1,v1=ab`, with format list.
	// Default: every entry is a bare signature.
	Field string `json:"field,omitempty"`

	// The text between list entries. Default: `,`.
	Separator string `json:"separator,omitempty"`

	// The text between a list entry's name and value. Default: `=`.
	Assign string `json:"assign,omitempty"`

	// The hash: `sha256`, `sha512`, `sha384` or `sha1`. Default: `sha256`.
	Digest string `json:"digest,omitempty"`

	// How the digest is written: `hex`, `base64` or `base64url`. Default: `hex`.
	Encoding string `json:"encoding,omitempty"`

	// How a secret becomes key bytes: `utf8`, `hex` or `base64`. Default: `utf8`.
	KeyEncoding string `json:"key_encoding,omitempty"`

	// What is signed: text with `{body}`, `{timestamp}`, `{id}`, `{url}`, `{method}` and `{header.Name}`;
	// `\n` is a line feed. Default: `{body}`.
	Content string `json:"content,omitempty"`

	// The header that holds the signed time. Default: none.
	TimestampHeader string `json:"timestamp_header,omitempty"`

	// The list entry that holds the signed time, with format list. Default: none.
	TimestampField string `json:"timestamp_field,omitempty"`

	// The unit of the signed time: `s` or `ms`. Default: `s`.
	TimestampUnit string `json:"timestamp_unit,omitempty"`

	// The header that `{id}` stands for.
	ID string `json:"id,omitempty"`

	// How far the signed time may be from now, in both directions. Default: `5m`.
	Tolerance caddy.Duration `json:"tolerance,omitempty"`

	scheme verifier.Verifier
}

// CaddyModule returns the Caddy module information.
func (*HMAC) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  verifiersNamespace + ".hmac",
		New: func() caddy.Module { return new(HMAC) },
	}
}

// Provision resolves the secrets and compiles the scheme.
func (m *HMAC) Provision(ctx caddy.Context) error {
	secrets, err := m.provision(ctx)
	if err != nil {
		return err
	}
	m.scheme, err = m.compile(secrets)
	return err
}

// Scheme gives the compiled scheme; of its sender nothing is known.
func (m *HMAC) Scheme() (verifier.Verifier, verifier.Facts) { return m.scheme, verifier.Facts{} }

func (m *HMAC) compile(secrets []verifier.Secret) (verifier.Verifier, error) {
	scheme := verifier.HMAC{
		Header:    m.Header,
		Format:    verifier.Format(m.Format),
		Prefix:    m.Prefix,
		Field:     m.Field,
		Separator: m.Separator,
		Assign:    m.Assign,
		Digest:    verifier.Digest(m.Digest),
		Encoding:  verifier.Encoding(m.Encoding),
		Key:       verifier.KeyEncoding(m.KeyEncoding),
		Content:   strings.ReplaceAll(m.Content, `\n`, "\n"),
		Timestamp: verifier.Timestamp{Header: m.TimestampHeader, Field: m.TimestampField, Unit: verifier.Unit(m.TimestampUnit)},
		ID:        verifier.ID{Header: m.ID},
		Blanks:    true,
		Bare:      m.Format == string(verifier.FormatList) && m.Field == "",
	}
	if m.Format == "" && m.Prefix != "" {
		scheme.Format = verifier.FormatPrefix
	}
	return scheme.New(verifier.Options{Secrets: secrets, Tolerance: time.Duration(m.Tolerance)})
}

// contentWords undoes what the Caddyfile adapter makes of the words that are shorthands for its placeholders.
var contentWords = strings.NewReplacer(
	"{http.request.method}", "{method}",
	"{http.request.header.", "{header.",
)

// UnmarshalCaddyfile sets up the scheme from Caddyfile tokens:
//
//	hmac [<secret>...] {
//		secret         <value> [until <RFC 3339>]
//		header         <name>
//		format         plain | prefix <text> | list [<field>]
//		separator      <text>
//		assign         <text>
//		digest         sha256 | sha512 | sha384 | sha1
//		encoding       hex | base64 | base64url
//		key_encoding   utf8 | hex | base64
//		content        <template>
//		timestamp      header <name> | field <name>
//		timestamp_unit s | ms
//		id             header <name>
//		tolerance      <duration>
//	}
func (m *HMAC) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // hmac
	m.unmarshalArgs(d)
	seen := make(map[string]bool)
	for d.NextBlock(0) {
		word := d.Val()
		if seen[word] && word != "secret" {
			return d.Errf("%s already specified", word)
		}
		seen[word] = true
		if err := m.unmarshalWord(d, word); err != nil {
			return err
		}
	}
	if m.Header == "" {
		return d.Errf("verify hmac does not say which header holds the signature: write `header <name>`")
	}
	return m.checkLiterals(d, m.compile)
}

func (m *HMAC) unmarshalWord(d *caddyfile.Dispenser, word string) error {
	switch word {
	case "secret":
		return m.unmarshalSecret(d)
	case "header":
		return unmarshalString(d, &m.Header)
	case "format":
		return m.unmarshalFormat(d)
	case "separator":
		if !d.AllArgs(&m.Separator) || m.Separator == "" { // a blank is a separator, too
			return d.Errf("separator takes one text, such as `separator \" \"`")
		}
		return nil
	case "assign":
		return unmarshalString(d, &m.Assign)
	case "digest":
		return unmarshalString(d, &m.Digest)
	case "encoding":
		return unmarshalString(d, &m.Encoding)
	case "key_encoding":
		return unmarshalString(d, &m.KeyEncoding)
	case "content":
		err := unmarshalString(d, &m.Content)
		m.Content = contentWords.Replace(m.Content)
		return err
	case "timestamp":
		return m.unmarshalTimestamp(d)
	case "timestamp_unit":
		return unmarshalString(d, &m.TimestampUnit)
	case "id":
		var kind string
		if !d.AllArgs(&kind, &m.ID) || kind != "header" {
			return d.Errf("write `id header <name>`")
		}
		return nil
	case "tolerance":
		return unmarshalDuration(d, &m.Tolerance)
	case "query":
		return d.Errf("query is not in this version: name the header with `header <name>`")
	}
	return unknownWord(d, "verify hmac", "secret", "header", "format", "separator", "assign", "digest", "encoding",
		"key_encoding", "content", "timestamp", "timestamp_unit", "id", "tolerance")
}

func (m *HMAC) unmarshalFormat(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	switch {
	case len(args) == 1 && args[0] == "plain":
	case len(args) == 2 && args[0] == "prefix":
		m.Prefix = args[1]
	case len(args) == 1 && args[0] == "list":
	case len(args) == 2 && args[0] == "list":
		m.Field = args[1]
	default:
		return d.Errf("write `format plain`, `format prefix <text>` or `format list [<field>]`")
	}
	m.Format = args[0]
	return nil
}

func (m *HMAC) unmarshalTimestamp(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	switch {
	case len(args) == 2 && args[0] == "header":
		m.TimestampHeader = args[1]
	case len(args) == 2 && args[0] == "field":
		m.TimestampField = args[1]
	default:
		return d.Errf("write `timestamp header <name>` or `timestamp field <name>`")
	}
	return nil
}

// Interface guards
var (
	_ Verifier              = (*HMAC)(nil)
	_ caddy.Provisioner     = (*HMAC)(nil)
	_ caddyfile.Unmarshaler = (*HMAC)(nil)
)
