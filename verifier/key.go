package verifier

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// KeyEncoding says how a secret's text becomes key bytes.
type KeyEncoding string

// All key encodings.
const (
	// KeyUTF8: the bytes of the whole text, prefixes included. The default.
	KeyUTF8 KeyEncoding = "utf8"
	// KeyHex: hex digits in either case.
	KeyHex KeyEncoding = "hex"
	// KeyBase64: standard base64, padded or not.
	KeyBase64 KeyEncoding = "base64"
	// KeyWhsec: base64 behind an optional "whsec_", or the "v1,whsec_" some
	// dashboards show (Standard Webhooks).
	KeyWhsec KeyEncoding = "whsec"
)

// The errors name the expected form and never the value: encoding/hex and
// encoding/base64 quote input in theirs, so those are not wrapped.
var (
	errKeyHex    = errors.New("the secret is not hex: an even number of hex digits is expected")
	errKeyBase64 = errors.New("the secret is not base64: letters, digits, + and /, with = at the end, are expected")
	errKeyWhsec  = errors.New(`the secret is not of the form "whsec_" and base64 (letters, digits, + and /, with = at the end)`)
	errKeyAsym   = errors.New(`the secret is an asymmetric key ("whpk_" or "whsk_"): a shared secret of the form "whsec_" and base64 is expected`)
	errKeyEmpty  = errors.New("the secret gives an empty key")
)

// decode makes key bytes of text; size is the exact number of bytes the scheme
// demands, 0 = any but none.
func (e KeyEncoding) decode(text string, size int) ([]byte, error) {
	var key []byte
	var err error
	switch e {
	case KeyUTF8, "":
		key = []byte(text)
	case KeyHex:
		if key, err = hex.DecodeString(text); err != nil {
			return nil, errKeyHex
		}
	case KeyBase64:
		if key, err = decodeBase64(text); err != nil {
			return nil, errKeyBase64
		}
	case KeyWhsec:
		if key, err = decodeWhsec(text); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("unknown key encoding %q: utf8, hex, base64 or whsec is expected", string(e))
	}
	if len(key) == 0 {
		return nil, errKeyEmpty
	}
	if size > 0 && len(key) != size {
		return nil, fmt.Errorf("the secret gives a key of %d bytes, the scheme takes exactly %d", len(key), size)
	}
	return key, nil
}

func decodeWhsec(text string) ([]byte, error) {
	text = strings.TrimPrefix(text, "v1,")
	if strings.HasPrefix(text, "whpk_") || strings.HasPrefix(text, "whsk_") {
		return nil, errKeyAsym
	}
	key, err := decodeBase64(strings.TrimPrefix(text, "whsec_"))
	if err != nil {
		return nil, errKeyWhsec
	}
	return key, nil
}

// decodeBase64 refuses line breaks, which encoding/base64 would skip: inside a
// secret they mean that two values were pasted as one.
func decodeBase64(text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, errKeyBase64
	}
	return base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
}
