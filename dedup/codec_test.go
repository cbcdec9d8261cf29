package dedup

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func fullReceipt() Receipt {
	return Receipt{
		Key: Key{"shop", "evt_1"}, Type: "order.created", State: StateCommitted, Digest: Digest{1, 2},
		Fingerprint: Digest{3}, Attempt: math.MaxUint64, Attempts: math.MaxUint32, Decided: 7, Closed: 5,
		Tokens: []AttemptToken{{6, [16]byte{1}}, {7, [16]byte{2}}}, Owner: [16]byte{9},
		Lease: noon.Add(time.Millisecond), FirstSeen: time.UnixMilli(0).UTC(), Updated: time.UnixMilli(-1).UTC(),
		Answer: &Answer{Status: 200, Header: []Field{{"Content-Type", "a/b"}, {"X", ""}, {"", "y"}},
			Body: []byte{0, 255}, BodyDropped: true},
		Learned: LearnedOperator, InDoubtBefore: true, Upstream: "app:3000", Restored: true,
	}
}

func TestReceiptsSurviveTheirEncoding(t *testing.T) {
	t.Parallel()
	small := Receipt{Key: Key{"s", "e"}, State: StateOpen}
	long := fullReceipt()
	long.Event = strings.Repeat("é\x00", 40000)
	for _, r := range []Receipt{small, fullReceipt(), long, receiptIn(StateReserved), receiptIn(StateRejected)} {
		got, err := DecodeReceipt(AppendReceipt(nil, r))
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Fatalf("got %+v, %v\nwant %+v", got, err, r)
		}
	}
}

// A record of version 1, byte for byte: what is on disk must stay readable, and must stay the same.
const smallRecord = "01" + "010473686f70" + "020165" + "040101" +
	"0520" + "0100000000000000000000000000000000000000000000000000000000000000" +
	"070114" + "080102" + "0a010a" +
	"0b18" + "0000000000000014" + "02000000000000000000000000000000" +
	"0d06c0d1af949567" + "0e0680a8a8949567" + "0f0680a8a8949567"

func TestTheEncodingStaysTheSame(t *testing.T) {
	t.Parallel()
	r := receiptIn(StateReserved)
	r.Type = ""
	if got := hex.EncodeToString(AppendReceipt(nil, r)); got != smallRecord {
		t.Fatalf("got  %s\nwant %s", got, smallRecord)
	}
}

func TestKeysStayTheSame(t *testing.T) {
	t.Parallel()
	for want, got := range map[string][16]byte{
		"74f928dcdd594069bc401abaa4159752": Key{"shop", "evt_1"}.Hash(), "0e10c11adfba62c19b4bd0acf4fa9061": GuardHash("shop", Digest{1}),
		"5947d7c33d783f94b3b4c1a96ebc8991": HashToken("00112233445566778899aabbccddeeff"),
	} {
		if hex.EncodeToString(got[:]) != want {
			t.Errorf("got %x, want %s", got, want)
		}
	}
	if (Key{"a", "bc"}).Hash() == (Key{"ab", "c"}).Hash() {
		t.Error("source and event run into each other")
	}
}

func TestUnknownFieldsAreCarriedAlong(t *testing.T) {
	t.Parallel()
	later := append(AppendReceipt(nil, receiptIn(StateReserved)), byte(tagEnd), 2, 'h', 'i', byte(tagEnd+1), 0)
	r, err := DecodeReceipt(later)
	if err != nil {
		t.Fatal(err)
	}
	next, _, _, err := Step(Finish{Key: r.Key, Attempt: 20, Outcome: Commit, At: noon}, r, true)
	if err != nil {
		t.Fatal(err)
	}
	if b := AppendReceipt(nil, next); !bytes.HasSuffix(b, later[len(later)-6:]) {
		t.Fatalf("%x", b)
	}
}

func TestNoDamagedRecordIsRead(t *testing.T) {
	t.Parallel()
	good := AppendReceipt(nil, fullReceipt())
	for n := range good {
		if r, err := DecodeReceipt(good[:n]); err == nil && n < len(good)-3 && r.Answer == nil {
			t.Fatalf("cut to %d of %d bytes: %+v", n, len(good), r)
		}
	}
	newer := bytes.Clone(good)
	newer[0] = 2
	state := Receipt{Key: Key{"s", "e"}, State: stateEnd}
	for name, c := range map[string]struct {
		record []byte
		want   error
	}{
		"nothing":                 {nil, ErrCorrupt},
		"a newer version":         {newer, ErrNewerFormat},
		"a newer state":           {AppendReceipt(nil, state), ErrNewerFormat},
		"no key":                  {AppendReceipt(nil, Receipt{State: StateOpen}), ErrCorrupt},
		"no state":                {AppendReceipt(nil, Receipt{Key: Key{"s", "e"}}), ErrCorrupt},
		"final without answer":    {AppendReceipt(nil, Receipt{Key: Key{"s", "e"}, State: StateCommitted}), ErrCorrupt},
		"a field twice":           {append(bytes.Clone(good), byte(tagRestored), 1, 1), ErrCorrupt},
		"a length beyond the end": {append(bytes.Clone(good), byte(tagEnd), 9, 1), ErrCorrupt},
		"an endless number":       {append(bytes.Clone(good), bytes.Repeat([]byte{0xff}, 11)...), ErrCorrupt},
	} {
		if r, err := DecodeReceipt(c.record); !errors.Is(err, c.want) {
			t.Errorf("%s: got %+v, %v", name, r, err)
		}
	}
}

func FuzzDecodeReceipt(f *testing.F) {
	f.Add(AppendReceipt(nil, fullReceipt()))
	f.Add(AppendReceipt(nil, receiptIn(StateReserved)))
	f.Add([]byte{1, 1, 1, 's', 2, 1, 'e', 4, 1, 2, 99, 1, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeReceipt(b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNewerFormat) {
				t.Fatal(err)
			}
			return
		}
		again, err := DecodeReceipt(AppendReceipt(nil, r))
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Fatalf("%+v became %+v, %v", r, again, err)
		}
	})
}
