package verifier

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// Preset is one real sender. It is shared and must not be changed.
type Preset struct {
	// Name is the word in the configuration and the name of its vector file.
	Name string
	// Title is the sender's name as people write it.
	Title string
	// Variants are the sender's schemes, the strongest first. The first whose
	// signature header is present is used; there is no falling back to
	// another when it does not verify.
	Variants []Family
	Facts
}

var _ Family = (*Preset)(nil)

// New compiles the preset with one source's secrets.
func (p *Preset) New(o Options) (Verifier, error) {
	if len(o.Secrets) == 0 {
		return nil, fmt.Errorf("%s: no secret", p.Name)
	}
	if len(p.Variants) == 0 {
		return nil, fmt.Errorf("%s: no scheme", p.Name)
	}
	set := make(variants, 0, len(p.Variants))
	for _, family := range p.Variants {
		v, err := family.New(o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		if len(p.Variants) == 1 {
			return v, nil
		}
		reader, ok := v.(HeaderReader)
		if !ok || len(reader.Headers()) == 0 {
			return nil, fmt.Errorf("%s: one of several variants does not name its headers", p.Name)
		}
		set = append(set, variant{v, reader.Headers()})
	}
	return set, nil
}

// variant is one scheme of several, with the headers it judges by.
type variant struct {
	Verifier
	headers []string // the signature's first
}

type variants []variant

// Begin picks the variant by the signature header that is present.
func (set variants) Begin(req Request) (Check, error) {
	for i, v := range set {
		if !present(req.Header, v.headers[0]) {
			continue
		}
		if err := set.unmixed(req.Header, i); err != nil {
			return nil, err
		}
		return v.Begin(req)
	}
	return set[0].Begin(req)
}

// unmixed refuses headers of a stronger variant beside the signature of a weaker
// one. Identification takes the first id header that is present: an unsigned
// svix-id added to a delivery signed under webhook-id would make a new event of
// a repeat.
func (set variants) unmixed(h http.Header, chosen int) error {
	for _, stronger := range set[:chosen] {
		for _, name := range stronger.headers {
			if present(h, name) && !slices.Contains(set[chosen].headers, name) {
				return refuse(ReasonMalformedHeader, "%s came without %s: headers of two schemes are mixed", name, stronger.headers[0])
			}
		}
	}
	return nil
}

// Sign signs under the first variant.
func (set variants) Sign(req Request, body []byte) (http.Header, error) {
	signer, ok := set[0].Verifier.(Signer)
	if !ok {
		return nil, errors.New("this scheme cannot sign")
	}
	return signer.Sign(req, body)
}

// Headers lists the headers of all variants.
func (set variants) Headers() []string {
	var names []string
	for _, v := range set {
		names = append(names, v.headers...)
	}
	return names
}

// SignsHeader implements [HeaderSigner]: a header counts if the variant that
// uses it signs it.
func (set variants) SignsHeader(name string) bool {
	return slices.ContainsFunc(set, func(v variant) bool {
		signer, ok := v.Verifier.(HeaderSigner)
		return ok && signer.SignsHeader(name)
	})
}

func present(h http.Header, canonical string) bool {
	_, ok := h[canonical]
	return ok
}
