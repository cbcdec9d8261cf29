package verifier

import (
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
)

// Digest is the hash function of a keyed digest.
type Digest string

// All digests.
const (
	DigestSHA256 Digest = "sha256" // the default
	DigestSHA512 Digest = "sha512"
	DigestSHA384 Digest = "sha384"
	DigestSHA1   Digest = "sha1" // only for senders that offer nothing else
)

func (d Digest) new() (func() hash.Hash, error) {
	switch d {
	case DigestSHA256, "":
		return sha256.New, nil
	case DigestSHA512:
		return sha512.New, nil
	case DigestSHA384:
		return sha512.New384, nil
	case DigestSHA1:
		return sha1.New, nil
	}
	return nil, fmt.Errorf("unknown digest %q: sha256, sha512, sha384 or sha1 is expected", string(d))
}

// Encoding is how a digest is written in a header.
type Encoding string

// All encodings. Digests are compared as text in exactly this form, so that one
// digest has one text: nothing is decoded that could be decoded leniently.
const (
	EncodingHex       Encoding = "hex"       // lower-case, the default
	EncodingBase64    Encoding = "base64"    // standard alphabet, padded
	EncodingBase64URL Encoding = "base64url" // URL alphabet, without padding
)

func (e Encoding) validate() error {
	switch e {
	case EncodingHex, EncodingBase64, EncodingBase64URL, "":
		return nil
	}
	return fmt.Errorf("unknown encoding %q: hex, base64 or base64url is expected", string(e))
}

// append appends the text of sum to dst.
func (e Encoding) append(dst, sum []byte) []byte {
	switch e {
	case EncodingBase64:
		return base64.StdEncoding.AppendEncode(dst, sum)
	case EncodingBase64URL:
		return base64.RawURLEncoding.AppendEncode(dst, sum)
	default:
		return hex.AppendEncode(dst, sum)
	}
}

// length is the number of characters of a digest of size bytes.
func (e Encoding) length(size int) int {
	switch e {
	case EncodingBase64:
		return base64.StdEncoding.EncodedLen(size)
	case EncodingBase64URL:
		return base64.RawURLEncoding.EncodedLen(size)
	default:
		return hex.EncodedLen(size)
	}
}

// wellFormed reports whether text could be a digest of size bytes. It only
// saves reading the body of a hopeless delivery; the comparison decides.
func (e Encoding) wellFormed(text string, size int) bool {
	if len(text) != e.length(size) {
		return false
	}
	padding := 0
	for i := range len(text) {
		c := text[i]
		ok := c >= '0' && c <= '9' || c >= 'a' && c <= 'f'
		if !ok && e != EncodingHex && e != "" {
			ok = c >= 'g' && c <= 'z' || c >= 'A' && c <= 'Z'
			if e == EncodingBase64 {
				ok = ok || c == '+' || c == '/'
				if c == '=' {
					padding++
					continue
				}
			} else {
				ok = ok || c == '-' || c == '_'
			}
		}
		if !ok || padding > 0 {
			return false
		}
	}
	return padding <= 2
}

// describe is the expected form in words, for errors.
func (e Encoding) describe(size int) string {
	switch e {
	case EncodingBase64:
		return fmt.Sprintf("%d characters of base64 with padding", e.length(size))
	case EncodingBase64URL:
		return fmt.Sprintf("%d characters of base64url without padding", e.length(size))
	default:
		return fmt.Sprintf("%d lower-case hex digits", e.length(size))
	}
}
