package event

import (
	"bytes"
	"math"
	"strconv"
)

// maxExactInteger is 2^53: beyond it, doubles skip integers, and parsers that use them confuse two ids.
const maxExactInteger = 1 << 53

// isExact tells whether a JSON number survives a parser that reads it as an IEEE 754 double: the shortest
// decimal of that double is the very number that was written. 0.1 is exact in this sense, 0.1000000000000000001
// and 9007199254740993 are not.
func isExact(text []byte) bool {
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.Abs(f) > maxExactInteger {
		return false
	}
	written, ok := parseDecimal(text)
	if !ok {
		return false
	}
	read, ok := parseDecimal(strconv.AppendFloat(nil, f, 'e', -1, 64))
	return ok && written.equal(read)
}

// decimal is digits * 10^exponent, without zeros at either end of digits; zero has none.
type decimal struct {
	negative bool
	digits   []byte
	exponent int
}

func (d decimal) equal(e decimal) bool {
	if len(d.digits) == 0 && len(e.digits) == 0 {
		return true // -0 is 0 (RFC 8785, section 3.2.2.3)
	}
	return d.negative == e.negative && d.exponent == e.exponent && bytes.Equal(d.digits, e.digits)
}

// parseDecimal reads a JSON number. It fails only where the exponent does not fit an int.
func parseDecimal(text []byte) (decimal, bool) {
	var d decimal
	mantissa, exponent := text, []byte(nil)
	if e := bytes.IndexAny(text, "eE"); e >= 0 {
		mantissa, exponent = text[:e], text[e+1:]
	}
	mantissa, d.negative = bytes.CutPrefix(mantissa, []byte("-"))
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	d.digits = append(append(d.digits, whole...), fraction...)
	kept := len(bytes.TrimRight(d.digits, "0"))
	trailing := len(d.digits) - kept
	d.digits = bytes.TrimLeft(d.digits[:kept], "0")
	if len(d.digits) == 0 {
		return decimal{}, true
	}
	if len(exponent) > 0 {
		n, err := strconv.ParseInt(string(exponent), 10, 32)
		if err != nil {
			return decimal{}, false
		}
		d.exponent = int(n)
	}
	d.exponent += trailing - len(fraction)
	return d, true
}
