package caddy

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/einlass/einlass/verifier"
)

// sample is one signed event, ready to be sent again and again.
type sample struct {
	url    string
	header http.Header // what the sender sets besides the signature
	body   []byte
	other  []byte // other content under the same id
	signer verifier.Signer
	client *http.Client
}

func newSample(o sendOptions, url string) (*sample, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	preset, ok := verifier.LookupPreset(o.provider)
	if !ok {
		near := ""
		if name := verifier.NearestPreset(o.provider); name != "" {
			near = fmt.Sprintf("did you mean %q? ", name)
		}
		return nil, fmt.Errorf("unknown provider %q: %sone of %s", o.provider, near, strings.Join(presetNames(), ", "))
	}
	secret, err := verifier.NewSecret(o.secret, time.Time{})
	if err != nil {
		return nil, err
	}
	scheme, err := preset.New(verifier.Options{Secrets: []verifier.Secret{secret}})
	if err != nil {
		return nil, err
	}
	signer, ok := scheme.(verifier.Signer)
	if !ok {
		return nil, fmt.Errorf("deliveries of %s cannot be signed with a shared secret", o.provider)
	}
	s := &sample{url: url, signer: signer, header: make(http.Header), client: &http.Client{
		Timeout: o.timeout,
		// A gate never redirects; if something does, it is shown and not followed.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	return s, s.fill(preset.Sample, o)
}

// fill sets headers and body from the sender's sample, with an id of its own.
func (s *sample) fill(p verifier.Sample, o sendOptions) error {
	id, typ := or(o.id, newID()), or(o.typ, p.Type)
	words := strings.NewReplacer("{id}", id, "{type}", typ, "{n}", "1")
	for name, values := range p.Header {
		for _, v := range values {
			s.header.Add(name, words.Replace(v))
		}
	}
	if s.header.Get("Content-Type") == "" {
		s.header.Set("Content-Type", "application/json")
	}
	var err error
	switch o.bodyFile {
	case "":
		s.body = []byte(words.Replace(p.Body))
	case "-":
		s.body, err = io.ReadAll(os.Stdin)
	default:
		s.body, err = os.ReadFile(o.bodyFile)
	}
	s.other = otherContent(s.body)
	return err
}

// otherContent changes a body so that no way to compare takes it for the same, but that of the id alone: a JSON
// object gets a member more, anything else a line feed.
func otherContent(body []byte) []byte {
	trimmed := bytes.TrimRight(body, " \t\r\n")
	if inside, ok := bytes.CutSuffix(trimmed, []byte("}")); ok && len(inside) > 1 {
		return append(bytes.Clone(inside), `,"webhook_gate_conflict":true}`...)
	}
	return append(bytes.Clone(body), '\n')
}

// newID gives an id that every known sender's rules allow: lower-case letters and digits.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return "evt-" + hex.EncodeToString(b[:])
}

// deliver sends the event as the options say, in order; the parallel ones at once.
func (s *sample) deliver(ctx context.Context, o sendOptions) []sent {
	var deliveries []sent
	if o.parallel > 0 {
		deliveries = make([]sent, o.parallel)
		var wg sync.WaitGroup
		for i := range deliveries {
			wg.Go(func() { deliveries[i] = s.send(ctx, "parallel", s.body) })
		}
		wg.Wait()
	} else {
		deliveries = append(deliveries, s.send(ctx, "first", s.body))
	}
	for range o.repeat {
		deliveries = append(deliveries, s.send(ctx, "repeat", s.body))
	}
	if o.conflict {
		deliveries = append(deliveries, s.send(ctx, "conflict", s.other))
	}
	return deliveries
}

func (s *sample) send(ctx context.Context, step string, body []byte) (d sent) {
	d.Step = step
	began := time.Now()
	defer func() { d.Millis = float64(time.Since(began).Microseconds()) / 1000 }()
	req, err := s.request(ctx, body)
	if err != nil {
		d.Error = err.Error()
		return d
	}
	resp, err := s.client.Do(req)
	if err != nil {
		d.Error = err.Error()
		return d
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		d.Error = err.Error()
		return d
	}
	d.Status, d.Body = resp.StatusCode, string(answer)
	d.Receipt, d.Retry = resp.Header.Get(headerReceipt), resp.Header.Get("Retry-After")
	var problem struct{ Code string }
	if resp.Header.Get("Content-Type") == "application/problem+json" && json.Unmarshal(answer, &problem) == nil {
		d.Code = problem.Code
	}
	return d
}

// request signs at the time of sending.
func (s *sample) request(ctx context.Context, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = s.header.Clone()
	signature, err := s.signer.Sign(verifier.Request{
		Method: req.Method, URL: s.url, Header: req.Header, Now: time.Now(),
	}, body)
	if err != nil {
		return nil, err
	}
	for name, values := range signature {
		req.Header[name] = values
	}
	return req, nil
}
