package demo

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// refusal is a delivery that must not reach the app.
type refusal struct {
	name   string
	status int
	code   string
	// make turns a well-formed delivery of the event into the bad one.
	make func(d delivery, e *event) delivery
}

// otherSecret is well-formed and not the sender's.
const otherSecret = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// forgeries are deliveries that are not authentic.
func forgeries() []refusal {
	list := []refusal{
		{"a wrong signature", 401, "authentication", func(d delivery, _ *event) delivery {
			d.header.Set(headerSignature, strings.Repeat("0", 64))
			return d
		}},
		{"one bit of the body changed", 401, "authentication", func(d delivery, _ *event) delivery {
			d.body = bytes.Clone(d.body)
			d.body[len(d.body)-2] ^= 1 // the last digit of the value
			return d
		}},
		{"signed with another secret", 401, "authentication", func(d delivery, _ *event) delivery {
			d.signByHand(otherSecret)
			return d
		}},
		{"no signature", 401, "authentication", func(d delivery, _ *event) delivery {
			d.header.Del(headerSignature)
			return d
		}},
		{"the signature twice", 400, "ambiguous_header", func(d delivery, _ *event) delivery {
			d.header.Add(headerSignature, d.header.Get(headerSignature))
			return d
		}},
		{"another delivery's id", 401, "authentication", func(d delivery, _ *event) delivery {
			d.header.Set(headerDelivery, d.header.Get(headerDelivery)+"0")
			return d
		}},
	}
	list = append(list,
		resigned("signed 301 s ago", headerTimestamp, func() string { return unix(-301 * time.Second) }),
		// The second that has begun is cut off: 302 whole ones are at least 301.
		resigned("signed for 301 s ahead", headerTimestamp, func() string { return unix(302 * time.Second) }),
		resigned("a timestamp of letters", headerTimestamp, always("yesterday!")),
		resigned("a timestamp of 9 digits", headerTimestamp, func() string { return unix(0)[:9] }),
		resigned("a timestamp of 11 digits", headerTimestamp, func() string { return "0" + unix(0) }),
		resigned("an empty timestamp", headerTimestamp, always("")),
		resigned("a delivery id of 65 characters", headerDelivery, always(strings.Repeat("d", 65))),
		resigned("a delivery id in capitals", headerDelivery, always("DLV-1")),
		resigned("an empty delivery id", headerDelivery, always("")),
	)
	return append(list, refusal{"no delivery id", 401, "authentication", func(d delivery, _ *event) delivery {
		d.header.Del(headerDelivery)
		d.signByHand(secret)
		return d
	}})
}

// resigned is a delivery whose signature is right for a header that is not.
func resigned(name, header string, value func() string) refusal {
	return refusal{name, 401, "authentication", func(d delivery, _ *event) delivery {
		d.header.Set(header, value())
		d.signByHand(secret)
		return d
	}}
}

func always(value string) func() string { return func() string { return value } }

// unix is the time so far from now, in the scheme's 10 digits.
func unix(from time.Duration) string { return strconv.FormatInt(time.Now().Add(from).Unix(), 10) }

// malformed are authentic deliveries whose body is not strict JSON or not what was agreed.
func malformed() []refusal {
	var list []refusal
	for _, bad := range []struct {
		name   string
		status int
		code   string
		body   string // %s is the event's id
	}{
		{"damaged JSON", 400, "invalid_json", `{"event_id":"%s","kind":"increment","value":5`},
		{"something behind the JSON", 400, "invalid_json", `{"event_id":"%s","kind":"increment","value":5} {}`},
		{"a name that stands twice", 400, "invalid_json", `{"event_id":"%s","kind":"increment","value":5,"value":6}`},
		{"a name twice, in another case", 400, "invalid_json", `{"event_id":"%s","kind":"increment","value":5,"Value":6}`},
		{"bytes that are not UTF-8", 400, "invalid_json", "{\"event_id\":\"%s\",\"kind\":\"increment\xff\",\"value\":5}"},
		{"NaN", 400, "invalid_json", `{"event_id":"%s","kind":"increment","value":NaN}`},
		{"Infinity", 400, "invalid_json", `{"event_id":"%s","kind":"increment","value":Infinity}`},
		{"a boolean as the value", 422, "event_contract", `{"event_id":"%s","kind":"increment","value":true}`},
		{"digits in a string as the value", 422, "event_contract", `{"event_id":"%s","kind":"increment","value":"5"}`},
		{"a fraction as the value", 422, "event_contract", `{"event_id":"%s","kind":"increment","value":5.5}`},
		{"the value 0", 422, "event_contract", `{"event_id":"%s","kind":"increment","value":0}`},
		{"the value 101", 422, "event_contract", `{"event_id":"%s","kind":"increment","value":101}`},
		{"another kind", 422, "event_contract", `{"event_id":"%s","kind":"decrement","value":5}`},
		{"a missing field", 422, "event_contract", `{"event_id":"%s","kind":"increment"}`},
		{"a field too many", 422, "event_contract", `{"event_id":"%s","kind":"increment","value":5,"note":"x"}`},
	} {
		list = append(list, refusal{bad.name, bad.status, bad.code, func(d delivery, e *event) delivery {
			d.body = fmt.Appendf(nil, bad.body, e.id)
			d.signByHand(secret)
			return d
		}})
	}
	return list
}

// limit is the largest body that the sender's scheme allows, in bytes.
const limit = 8192

// outsized are deliveries that break a limit of the transport.
func outsized() []refusal {
	return []refusal{
		{"8193 bytes", 413, "body_size", func(d delivery, e *event) delivery {
			d.body = padded(e.body, limit+1)
			d.signByHand(secret)
			return d
		}},
		{"8193 bytes, of no declared length", 413, "body_size", func(d delivery, e *event) delivery {
			d.body, d.chunked = padded(e.body, limit+1), true
			d.signByHand(secret)
			return d
		}},
		{"GET", 405, "method", func(d delivery, _ *event) delivery {
			d.method, d.body = http.MethodGet, nil
			d.signByHand(secret)
			return d
		}},
	}
}

// padded fills a JSON body up to size bytes without changing what it says.
func padded(body []byte, size int) []byte {
	return append(bytes.Clone(body), bytes.Repeat([]byte(" "), size-len(body))...)
}

// tellRefusal sends the bad delivery of a new event and then, under the same id, the good one: what was refused
// must not have used it up.
func (l *lab) tellRefusal(ctx context.Context, r refusal) error {
	e := l.newEvent(3)
	s, err := l.begin(ctx, r.name, e.id+" so, then well-formed")
	if err != nil {
		return err
	}
	good, err := l.sender.newDelivery(e.body)
	if err != nil {
		return err
	}
	refused, err := l.deliverRaw(ctx, r.make(good, e))
	if err != nil {
		return err
	}
	s.answered(refused, r.status, r.code)
	if err := s.effect(ctx, 0, 0); err != nil {
		return err
	}
	got, err := l.deliver(ctx, e)
	if err != nil {
		return err
	}
	s.Answer += ", then " + got.String()
	s.check("the same id can still be used", got.status == 200 && !got.isDuplicate(), got)
	after, err := l.look(ctx)
	if err != nil {
		return err
	}
	s.Effect = fmt.Sprintf("+0, then %+d, now %d", after.total-s.before.total, after.total)
	checkEqual(s.Step, "its effect has happened once", after.total-s.before.total, e.value)
	return nil
}
