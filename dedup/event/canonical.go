package event

import (
	"github.com/go-json-experiment/json/jsontext"
)

// canonical gives the canonical form (RFC 8785) of a strict JSON body without the values at ignored. It is
// false where that form would not be sound: where a number would be rounded, two events that differ would
// look the same.
func canonical(body []byte, ignored []pointer) ([]byte, bool) {
	p := pruner{body: body, out: make([]byte, 0, len(body))}
	if end := p.value(skipSpace(body, 0), ignored); end < 0 {
		return nil, false
	}
	value := jsontext.Value(p.out)
	if err := value.Canonicalize(); err != nil {
		return nil, false
	}
	return value, true
}

// pruner copies a valid JSON value without what is ignored.
type pruner struct {
	body []byte
	out  []byte
}

// value copies the value at i, inside which the pointers of ignored stand, and gives the place after it, or
// -1 at a number that is not exact.
func (p *pruner) value(i int, ignored []pointer) int {
	c := p.body[i]
	switch {
	case c == '{' || c == '[':
		return p.container(i, ignored)
	case c == '-' || '0' <= c && c <= '9':
		end := skipPlain(p.body, i)
		if !isExact(p.body[i:end]) {
			return -1
		}
		p.out = append(p.out, p.body[i:end]...)
		return end
	}
	end := skipValue(p.body, i)
	p.out = append(p.out, p.body[i:end]...)
	return end
}

func (p *pruner) container(i int, ignored []pointer) int {
	object := p.body[i] == '{'
	p.out = append(p.out, p.body[i])
	copied := false
	at, ok := next(p.body, i+1, object)
	for n := 0; ok; n++ {
		inside, drop := below(ignored, at.name, n)
		var end int
		if drop {
			end = skipValue(p.body, at.value)
		} else {
			if copied {
				p.out = append(p.out, ',')
			}
			copied = true
			if object {
				p.out = append(append(p.out, at.name...), ':')
			}
			if end = p.value(at.value, inside); end < 0 {
				return -1
			}
		}
		at, ok = next(p.body, end, object)
	}
	p.out = append(p.out, p.body[at.start])
	return at.start + 1
}

// below gives the pointers that go on inside the member with that quoted name, or the element with index n,
// and whether one of them ends there.
func below(ignored []pointer, name []byte, n int) (inside []pointer, drop bool) {
	for _, p := range ignored {
		if name == nil {
			if index, ok := arrayIndex(p[0]); !ok || index != n {
				continue
			}
		} else if !isName(name, p[0]) {
			continue
		}
		if len(p) == 1 {
			return nil, true
		}
		inside = append(inside, p[1:])
	}
	return inside, false
}
