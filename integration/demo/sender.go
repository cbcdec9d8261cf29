package demo

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/einlass/einlass/verifier"
)

// The sender's scheme and its headers.
const (
	scheme          = "demo-webhook-v1"
	headerDelivery  = "X-Demo-Delivery"
	headerTimestamp = "X-Demo-Timestamp"
	headerSignature = "X-Demo-Signature"
)

// sender is the webhook producer: it signs and sends, and counts what it sent.
type sender struct {
	signer     verifier.Signer
	client     *http.Client
	requests   atomic.Int64
	deliveries atomic.Int64
}

// newSender makes a sender that signs with the secret, which is 64 hex digits.
func newSender(secret string) (*sender, error) {
	preset, ok := verifier.LookupPreset(scheme)
	if !ok {
		return nil, fmt.Errorf("no verifier is called %s", scheme)
	}
	key, err := verifier.NewSecret(secret, time.Time{})
	if err != nil {
		return nil, err
	}
	v, err := preset.New(verifier.Options{Secrets: []verifier.Secret{key}})
	if err != nil {
		return nil, err
	}
	signer, ok := v.(verifier.Signer)
	if !ok {
		return nil, fmt.Errorf("%s cannot sign", scheme)
	}
	return &sender{
		signer: signer,
		client: &http.Client{
			// A connection per delivery, as from many machines; and a connection that is kept would make
			// net/http repeat a request by itself after the gate was restarted.
			Transport:     &http.Transport{DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Timeout:       15 * time.Second,
		},
	}, nil
}

// delivery is one request to the gate.
type delivery struct {
	method  string
	header  http.Header
	body    []byte
	chunked bool // without a Content-Length
}

// newDelivery makes a signed delivery of body, with a delivery id that no other has.
func (s *sender) newDelivery(body []byte) (delivery, error) {
	header := http.Header{"Content-Type": {"application/json"}}
	header.Set(headerDelivery, "dlv-"+strconv.FormatInt(s.deliveries.Add(1), 10))
	signed, err := s.signer.Sign(verifier.Request{Method: http.MethodPost, Header: header, Now: time.Now()}, body)
	if err != nil {
		return delivery{}, fmt.Errorf("sign: %w", err)
	}
	for name, values := range signed {
		header[name] = values
	}
	return delivery{method: http.MethodPost, header: header, body: body}, nil
}

// signByHand gives the delivery a signature that is right for its delivery id, timestamp and body, whatever
// they are: the package that checks refuses to sign what is malformed.
func (d delivery) signByHand(secret string) {
	key, _ := hex.DecodeString(secret) // a constant of ours
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(scheme + "\n" + d.header.Get(headerDelivery) + "\n" + d.header.Get(headerTimestamp) + "\n"))
	mac.Write(d.body)
	d.header.Set(headerSignature, hex.EncodeToString(mac.Sum(nil)))
}

// answer is what the sender saw.
type answer struct {
	status int // 0: no answer came
	header http.Header
	body   []byte
	err    error
}

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 1 << 20

func (s *sender) send(ctx context.Context, url string, d delivery) answer {
	var body io.Reader = bytes.NewReader(d.body)
	if d.chunked {
		body = io.MultiReader(body) // hides the length
	}
	req, err := http.NewRequestWithContext(ctx, d.method, url, body)
	if err != nil {
		return answer{err: err}
	}
	req.Header = d.header
	s.requests.Add(1)
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return answer{err: err}
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: text}
}

// code is the stable word of a problem+json answer; "" where it is none.
func (a answer) code() string {
	var problem struct {
		Code string `json:"code"`
	}
	if a.header.Get("Content-Type") != "application/problem+json" || json.Unmarshal(a.body, &problem) != nil {
		return ""
	}
	return problem.Code
}

// total is the counter in an app's answer; -1 where there is none.
func (a answer) total() int64 {
	result := struct {
		Total *int64 `json:"total"`
	}{}
	if json.Unmarshal(a.body, &result) != nil || result.Total == nil {
		return -1
	}
	return *result.Total
}

func (a answer) isDuplicate() bool { return a.header.Get("Webhook-Gate-Receipt") == "duplicate" }

// retryAfter gives the seconds that the sender shall wait; 0 where it is told nothing.
func (a answer) retryAfter() time.Duration {
	seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// String describes the answer in a few words.
func (a answer) String() string {
	if a.err != nil || a.status == 0 {
		return "no answer"
	}
	text := strconv.Itoa(a.status)
	if code := a.code(); code != "" {
		text += " " + code
	} else if total := a.total(); total >= 0 {
		text += " total " + strconv.FormatInt(total, 10)
	}
	if a.isDuplicate() {
		text += ", duplicate"
	}
	if wait := a.header.Get("Retry-After"); wait != "" {
		text += ", retry after " + wait + " s"
	}
	return text
}
