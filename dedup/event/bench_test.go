package event

import (
	"fmt"
	"strings"
	"testing"
)

// typicalBody is a 4 KiB event as senders write them: nested objects, a list, the id behind all of it.
func typicalBody() []byte {
	var b strings.Builder
	b.WriteString(`{"type":"charge.succeeded","created":1767225600,"livemode":false,"data":{"object":{`)
	for i := 0; b.Len() < 2000; i++ {
		fmt.Fprintf(&b, `"attribute_%d":"a value of some length, number %d","flag_%d":true,`, i, i, i)
	}
	b.WriteString(`"lines":[`)
	for i := 0; b.Len() < 3900; i++ {
		fmt.Fprintf(&b, `{"id":"li_%06d","amount":%d,"currency":"eur","note":"caf\u00e9"},`, i, i*199)
	}
	b.WriteString(`{}]}},"request":{"id":"req_1","idempotency_key":null},"id":"evt_0123456789abcdef"}`)
	return []byte(b.String())
}

func BenchmarkDocument(b *testing.B) {
	body := typicalBody()
	id, typ := mustSelector(b, "json /id"), mustSelector(b, "json /type")
	b.Run("check and find id and type", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			doc := NewDocument(nil, body)
			if _, err := doc.Find(id); err != nil {
				b.Fatal(err)
			}
			if _, err := doc.Find(typ); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("syntax alone", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if err := checkSyntax(body); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("find id alone", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if _, ok := seek(body, id.pointer); !ok {
				b.Fatal("not found")
			}
		}
	})
	for _, how := range []string{"bytes", "json", "json ignore /request /data/object/lines"} {
		c := mustComparison(b, how)
		b.Run("fingerprint "+how, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				c.Fingerprint(NewDocument(nil, body))
			}
		})
	}
}

func BenchmarkContract(b *testing.B) {
	contract := mustContract(b, counterSchema)
	body := []byte(`{"event_id":"evt-1","kind":"increment","value":1,"tags":["a","b"]}`)
	b.ReportAllocs()
	for b.Loop() {
		if err := contract.Check(NewDocument(nil, body)); err != nil {
			b.Fatal(err)
		}
	}
}
