package verifier

import (
	"net/http"
	"strings"
)

// Bounds on what is read from headers before anything is verified.
const (
	// maxSignatureHeader is the longest signature header, in bytes.
	maxSignatureHeader = 8 << 10
	// maxListEntries is the highest number of entries in a list header. Each
	// that counts costs one comparison per secret.
	maxListEntries = 64
	// maxHeader is the longest other header, in bytes.
	maxHeader = 1 << 10
)

// single returns the one value of a header. name must be canonical.
func single(h http.Header, name string, limit int) (string, error) {
	values := h[name]
	if len(values) == 0 {
		return "", refuse(ReasonMissingHeader, "%s is absent", name)
	}
	if len(values) > 1 {
		return "", refuse(ReasonRepeatedHeader, "%s came %d times", name, len(values))
	}
	value := values[0]
	if strings.TrimSpace(value) == "" {
		return "", refuse(ReasonMissingHeader, "%s is empty", name)
	}
	if len(value) > limit {
		return "", refuse(ReasonMalformedHeader, "%s has %d bytes, at most %d are read", name, len(value), limit)
	}
	return value, nil
}

// list is the grammar of a signature header with several entries, such as
// "t=1,v1=ab,v1=cd" or "v1,ab v1,cd".
type list struct {
	separator string // between entries
	assign    string // between an entry's name and its value
	field     string // name of the entries that count; "" = all but the timestamp, whole
	timeField string // name of the entry with the timestamp; "" = none
	blanks    bool   // blanks around an entry do not count
}

// parse appends to signatures the values of the entries that count and returns
// the timestamp's text. Entries of other names are ignored: they are versions
// this scheme does not take, weaker ones among them. Names match exactly.
func (l list) parse(header, value string, signatures []string) ([]string, string, error) {
	var timestamp string
	var seen bool
	rest, more := value, true
	for n := 1; more; n++ {
		if n > maxListEntries {
			return nil, "", refuse(ReasonMalformedHeader, "%s has more than %d entries", header, maxListEntries)
		}
		var entry string
		entry, rest, more = strings.Cut(rest, l.separator)
		if l.blanks {
			entry = strings.Trim(entry, " \t")
		}
		name, content, ok := strings.Cut(entry, l.assign)
		switch {
		case ok && l.timeField != "" && name == l.timeField:
			// Two times leave open which one was signed and which one judged.
			if seen {
				return nil, "", refuse(ReasonMalformedHeader, "%s has the field %q twice", header, l.timeField)
			}
			timestamp, seen = content, true
		case l.field == "":
			signatures = append(signatures, entry)
		case ok && name == l.field:
			signatures = append(signatures, content)
		}
	}
	if l.timeField != "" && !seen {
		return nil, "", refuse(ReasonMalformedHeader, "%s has no field %q", header, l.timeField)
	}
	if len(signatures) == 0 {
		return nil, "", refuse(ReasonMalformedHeader, "%s has no entry %q", header, l.field)
	}
	return signatures, timestamp, nil
}
