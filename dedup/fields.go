package dedup

import (
	"encoding/binary"
	"fmt"
)

// recordWriter appends fields to a record. A zero value is not written: it is what a missing field means.
type recordWriter struct{ buf []byte }

func (w *recordWriter) bytes(tag uint64, value []byte) {
	w.buf = binary.AppendUvarint(w.buf, tag)
	w.buf = binary.AppendUvarint(w.buf, uint64(len(value)))
	w.buf = append(w.buf, value...)
}

func (w *recordWriter) text(tag uint64, value string) {
	if value != "" {
		w.buf = binary.AppendUvarint(w.buf, tag)
		w.buf = appendCounted(w.buf, value)
	}
}

func (w *recordWriter) number(tag, value uint64) {
	if value != 0 {
		var scratch [binary.MaxVarintLen64]byte
		w.bytes(tag, binary.AppendUvarint(scratch[:0], value))
	}
}

func (w *recordWriter) flag(tag uint64, value bool) {
	if value {
		w.number(tag, 1)
	}
}

func (w *recordWriter) tokens(tokens []AttemptToken) {
	if len(tokens) == 0 {
		return
	}
	value := make([]byte, 0, 24*len(tokens))
	for _, t := range tokens {
		value = binary.BigEndian.AppendUint64(value, t.Attempt)
		value = append(value, t.Hash[:]...)
	}
	w.bytes(tagTokens, value)
}

func appendCounted(dst []byte, text string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	return append(dst, text...)
}

// recordReader takes a record apart. Its first failure stays in err, and nothing is read after it.
type recordReader struct {
	buf []byte
	err error
}

func (v *recordReader) fail(what string) {
	if v.err == nil {
		v.err = fmt.Errorf("%w: record is malformed (%s)", ErrCorrupt, what)
	}
	v.buf = nil
}

func (v *recordReader) uvarint() uint64 {
	n, size := binary.Uvarint(v.buf)
	if size <= 0 {
		v.fail("number")
		return 0
	}
	v.buf = v.buf[size:]
	return n
}

func (v *recordReader) uvarintUpTo(limit uint64) uint64 {
	n := v.uvarint()
	if n > limit {
		v.fail("number out of range")
		return 0
	}
	return n
}

// number reads a field that is one number and nothing else.
func (v *recordReader) number(limit uint64) uint64 {
	n := v.uvarintUpTo(limit)
	if len(v.buf) > 0 {
		v.fail("number is too long")
	}
	return n
}

// take reads a length and as many bytes. They belong to the record: the caller copies what it keeps.
func (v *recordReader) take() []byte {
	n := v.uvarint()
	if n > uint64(len(v.buf)) {
		v.fail("length beyond the end")
		return nil
	}
	value := v.buf[:n:n]
	v.buf = v.buf[n:]
	return value
}

func (v *recordReader) text() string { return string(v.buf) }

func (v *recordReader) exactly(dst []byte) {
	if len(v.buf) != len(dst) {
		v.fail("fixed-size field")
		return
	}
	copy(dst, v.buf)
}

func (v *recordReader) tokens() []AttemptToken {
	if len(v.buf) == 0 || len(v.buf)%24 != 0 {
		v.fail("tokens")
		return nil
	}
	tokens := make([]AttemptToken, 0, len(v.buf)/24)
	for b := v.buf; len(b) > 0; b = b[24:] {
		tokens = append(tokens, AttemptToken{Attempt: binary.BigEndian.Uint64(b), Hash: [16]byte(b[8:24])})
	}
	return tokens
}
