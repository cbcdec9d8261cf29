package dedup

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// recordVersion is the first byte of an encoded receipt. It grows only when an older reader would misunderstand
// the record; a field that an older reader may carry along unread gets a new tag instead.
const recordVersion = 1

// Tags of a record's fields. They are on disk: numbers are never used again.
const (
	tagSource uint64 = iota + 1
	tagEvent
	tagType
	tagState
	tagDigest
	tagFingerprint // left out where it equals the digest
	tagAttempt
	tagAttempts
	tagDecided
	tagClosed
	tagTokens // 24 bytes each: attempt big endian, hash
	tagOwner
	tagLease // times: ms since 1970, zigzag varint
	tagFirstSeen
	tagUpdated
	tagAnswer
	tagLearned
	tagInDoubtBefore
	tagUpstream
	tagRestored
	tagEnd // first tag this version does not know
)

// AppendReceipt appends the encoded receipt to dst: a version byte, then fields of (tag, length, value) in
// ascending order of their tags, zero values left out. It carries no checksum: that is the store's.
func AppendReceipt(dst []byte, r Receipt) []byte {
	w := recordWriter{append(dst, recordVersion)}
	w.text(tagSource, r.Source)
	w.text(tagEvent, r.Event)
	w.text(tagType, r.Type)
	w.number(tagState, uint64(r.State))
	w.bytes(tagDigest, r.Digest[:])
	if r.Fingerprint != r.Digest {
		w.bytes(tagFingerprint, r.Fingerprint[:])
	}
	w.number(tagAttempt, r.Attempt)
	w.number(tagAttempts, uint64(r.Attempts))
	w.number(tagDecided, r.Decided)
	w.number(tagClosed, r.Closed)
	w.tokens(r.Tokens)
	if r.Owner != ([16]byte{}) {
		w.bytes(tagOwner, r.Owner[:])
	}
	w.time(tagLease, r.Lease)
	w.time(tagFirstSeen, r.FirstSeen)
	w.time(tagUpdated, r.Updated)
	if r.Answer != nil {
		w.bytes(tagAnswer, appendAnswer(nil, *r.Answer))
	}
	w.number(tagLearned, uint64(r.Learned))
	w.flag(tagInDoubtBefore, r.InDoubtBefore)
	w.text(tagUpstream, r.Upstream)
	w.flag(tagRestored, r.Restored)
	return append(w.buf, r.extra...)
}

// DecodeReceipt reads what AppendReceipt has made. It shares no memory with b. Anything it does not fully
// understand is an error ([ErrCorrupt], [ErrNewerFormat]), except fields with higher tags: these it carries along.
func DecodeReceipt(b []byte) (Receipt, error) {
	var r Receipt
	if len(b) == 0 {
		return r, fmt.Errorf("%w: empty record", ErrCorrupt)
	}
	if b[0] != recordVersion {
		return r, fmt.Errorf("%w: record format %d, this version knows %d", ErrNewerFormat, b[0], recordVersion)
	}
	in := recordReader{buf: b[1:]}
	last := uint64(0)
	for len(in.buf) > 0 && in.err == nil {
		field := in.buf
		tag, value := in.uvarint(), recordReader{}
		value.buf = in.take()
		switch {
		case in.err != nil:
		case tag <= last:
			in.fail("fields out of order")
		case tag >= tagEnd:
			r.extra = append(r.extra, field[:len(field)-len(in.buf)]...)
		default:
			r.decode(tag, &value)
			in.err = value.err
		}
		last = tag
	}
	if in.err != nil {
		return Receipt{}, in.err
	}
	return r.checked()
}

// decode reads one known field.
func (r *Receipt) decode(tag uint64, v *recordReader) {
	switch tag {
	case tagSource:
		r.Source = v.text()
	case tagEvent:
		r.Event = v.text()
	case tagType:
		r.Type = v.text()
	case tagState:
		r.State = State(v.number(math.MaxUint8))
	case tagDigest:
		v.exactly(r.Digest[:])
		r.Fingerprint = r.Digest
	case tagFingerprint:
		v.exactly(r.Fingerprint[:])
	case tagAttempt:
		r.Attempt = v.number(math.MaxUint64)
	case tagAttempts:
		r.Attempts = uint32(v.number(math.MaxUint32))
	case tagDecided:
		r.Decided = v.number(math.MaxUint64)
	case tagClosed:
		r.Closed = v.number(math.MaxUint64)
	case tagTokens:
		r.Tokens = v.tokens()
	case tagOwner:
		v.exactly(r.Owner[:])
	case tagLease:
		r.Lease = v.time()
	case tagFirstSeen:
		r.FirstSeen = v.time()
	case tagUpdated:
		r.Updated = v.time()
	case tagAnswer:
		r.Answer = v.answer()
	case tagLearned:
		r.Learned = Learned(v.number(math.MaxUint8))
	case tagInDoubtBefore:
		r.InDoubtBefore = v.number(1) == 1
	case tagUpstream:
		r.Upstream = v.text()
	case tagRestored:
		r.Restored = v.number(1) == 1
	}
}

// checked refuses a record that no transition can have made: taken for real, it would be answered from.
func (r Receipt) checked() (Receipt, error) {
	switch {
	case r.Source == "" || r.Event == "":
		return Receipt{}, fmt.Errorf("%w: record without a key", ErrCorrupt)
	case r.State >= stateEnd:
		return Receipt{}, fmt.Errorf("%w: record in state %d", ErrNewerFormat, r.State)
	case r.State == StateAbsent:
		return Receipt{}, fmt.Errorf("%w: record without a state", ErrCorrupt)
	case r.State.Final() != (r.Answer != nil):
		return Receipt{}, fmt.Errorf("%w: %s record, answer present: %t", ErrCorrupt, r.State, r.Answer != nil)
	}
	return r, nil
}

func appendAnswer(dst []byte, a Answer) []byte {
	dst = binary.AppendUvarint(dst, uint64(a.Status))
	dropped := uint64(0)
	if a.BodyDropped {
		dropped = 1
	}
	dst = binary.AppendUvarint(dst, dropped)
	dst = binary.AppendUvarint(dst, uint64(len(a.Header)))
	for _, f := range a.Header {
		dst = appendCounted(dst, f.Name)
		dst = appendCounted(dst, f.Value)
	}
	return append(dst, a.Body...)
}

func (v *recordReader) answer() *Answer {
	a := &Answer{Status: int(v.uvarintUpTo(math.MaxInt32)), BodyDropped: v.uvarintUpTo(1) == 1}
	for n := v.uvarintUpTo(uint64(len(v.buf))); n > 0 && v.err == nil; n-- {
		a.Header = append(a.Header, Field{Name: string(v.take()), Value: string(v.take())})
	}
	a.Body = append([]byte(nil), v.buf...)
	return a
}

func (w *recordWriter) time(tag uint64, t time.Time) {
	if !t.IsZero() {
		w.bytes(tag, binary.AppendVarint(nil, t.UnixMilli()))
	}
}

func (v *recordReader) time() time.Time {
	ms, n := binary.Varint(v.buf)
	if n != len(v.buf) || n == 0 {
		v.fail("time")
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
