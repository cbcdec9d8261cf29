package event

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
)

type comparisonMode uint8

const (
	byBytes comparisonMode = iota
	byID
	byJSON
)

const comparisonForms = "write `bytes`, `id`, `json` or `json ignore /pointer [/pointer...]`"

// Comparison says when two deliveries with the same event id carry the same event. Its text form is that of
// the Caddyfile:
//
//	bytes                            the bodies are equal, byte for byte
//	id                               the id alone decides, whatever the bodies
//	json [ignore /pointer...]        the bodies are equal as JSON values, without what is ignored
//
// The zero Comparison is `bytes`.
type Comparison struct {
	mode    comparisonMode
	ignored []pointer
}

// ParseComparison reads the text form. Its errors say what to write instead.
func ParseComparison(text string) (Comparison, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return Comparison{}, errors.New("nothing says what is compared: " + comparisonForms)
	}
	mode, rest := words[0], words[1:]
	switch {
	case mode == "json":
		return parseJSONComparison(rest)
	case mode != "bytes" && mode != "id":
		return Comparison{}, fmt.Errorf("%q is not a way to compare: %s", mode, comparisonForms)
	case len(rest) > 0:
		return Comparison{}, fmt.Errorf("`%s` takes no argument: %s", mode, comparisonForms)
	case mode == "id":
		return Comparison{mode: byID}, nil
	}
	return Comparison{mode: byBytes}, nil
}

func parseJSONComparison(words []string) (Comparison, error) {
	c := Comparison{mode: byJSON}
	if len(words) == 0 {
		return c, nil
	}
	if words[0] != "ignore" || len(words) == 1 {
		return Comparison{}, errors.New("`json` goes on with what it ignores: write for example `json ignore /attempt /sent_at`")
	}
	for _, word := range words[1:] {
		p, err := parsePointer(word)
		if err != nil {
			return Comparison{}, fmt.Errorf("`json ignore`: %w", err)
		}
		c.ignored = append(c.ignored, p)
	}
	return c, nil
}

// String gives the text form; [ParseComparison] reads it back.
func (c Comparison) String() string {
	switch c.mode {
	case byID:
		return "id"
	case byJSON:
		text := "json"
		for i, p := range c.ignored {
			if i == 0 {
				text += " ignore"
			}
			text += " " + p.String()
		}
		return text
	}
	return "bytes"
}

// ByID tells whether the id alone decides.
func (c Comparison) ByID() bool { return c.mode == byID }

// Fingerprint reduces a delivery to what is compared. For `json` it is the SHA-256 of the body's canonical
// form (RFC 8785) without what is ignored. A body for which that form is not sound gives the digest of its
// bytes, as with the other modes: one that is not strict JSON, or in which a number is no exact IEEE 754
// double or goes beyond 2^53.
func (c Comparison) Fingerprint(d *Document) [32]byte {
	if c.mode != byJSON || d.JSON() != nil {
		return d.Digest()
	}
	form, ok := canonical(d.body, c.ignored)
	if !ok {
		return d.Digest()
	}
	return sha256.Sum256(form)
}
