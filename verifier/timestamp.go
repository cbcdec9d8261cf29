package verifier

import (
	"strconv"
	"time"
)

// Unit is the unit of a timestamp.
type Unit string

// All timestamp units.
const (
	UnitSeconds      Unit = "s" // Unix seconds, the default
	UnitMilliseconds Unit = "ms"
)

// maxTimestampDigits bounds a timestamp so that it can neither overflow nor be
// used to carry text into the signed content.
const maxTimestampDigits = 14

// Timestamp says where a scheme's signed time is. The zero value = the scheme
// has none.
type Timestamp struct {
	// Header is the header that holds it alone.
	Header string
	// Field is the field of the signature header's list that holds it; only
	// with FormatList, and instead of Header.
	Field string
	// Unit of the number. Default: seconds.
	Unit Unit
	// Digits is the exact number of digits; 0 = 1 to 14.
	Digits int
}

// declared reports whether the scheme has a time at all.
func (t Timestamp) declared() bool { return t.Header != "" || t.Field != "" }

// name is how an operator would call the place of the timestamp.
func (t Timestamp) name() string {
	if t.Header != "" {
		return t.Header
	}
	return "the timestamp field " + strconv.Quote(t.Field)
}

// parse reads a strict decimal, [1-9][0-9]*: no sign, space, leading zero,
// fraction or suffix, so that one time has one text.
func (t Timestamp) parse(text string) (time.Time, bool) {
	if len(text) == 0 || len(text) > maxTimestampDigits || text[0] == '0' {
		return time.Time{}, false
	}
	if t.Digits > 0 && len(text) != t.Digits {
		return time.Time{}, false
	}
	var n int64
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return time.Time{}, false
		}
		n = n*10 + int64(text[i]-'0')
	}
	return t.Unit.time(n), true
}

// format is the inverse of parse.
func (t Timestamp) format(at time.Time) string {
	if t.Unit == UnitMilliseconds {
		return strconv.FormatInt(at.UnixMilli(), 10)
	}
	return strconv.FormatInt(at.Unix(), 10)
}

func (u Unit) time(n int64) time.Time {
	if u == UnitMilliseconds {
		return time.UnixMilli(n).UTC()
	}
	return time.Unix(n, 0).UTC()
}

// inWindow judges a signed time against now, in both directions; a time exactly
// tolerance away passes.
func (t Timestamp) inWindow(signed, now time.Time, tolerance time.Duration) error {
	switch skew := now.Sub(signed); {
	case skew > tolerance:
		return refuse(ReasonStale, "signed %s ago, at most %s is accepted%s",
			roughly(skew), tolerance, t.unitHint(signed, now, tolerance))
	case skew < -tolerance:
		return refuse(ReasonFuture, "signed %s ahead of this clock, at most %s is accepted%s",
			roughly(-skew), tolerance, t.unitHint(signed, now, tolerance))
	}
	return nil
}

// unitHint spots the commonest mistake of a hand-written scheme.
func (t Timestamp) unitHint(signed, now time.Time, tolerance time.Duration) string {
	other := Timestamp{Unit: UnitMilliseconds}
	n := signed.Unix()
	if t.Unit == UnitMilliseconds {
		other.Unit = UnitSeconds
		n = signed.UnixMilli()
	}
	if now.Sub(other.Unit.time(n)).Abs() > tolerance {
		return ""
	}
	return "; read as " + string(other.Unit) + " it would be in the window"
}

// roughly rounds for people; a time.Duration ends at 292 years.
func roughly(d time.Duration) string {
	if d.Abs() >= 200*365*24*time.Hour {
		return "centuries"
	}
	return d.Round(time.Millisecond).String()
}
