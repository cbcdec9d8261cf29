package caddy

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"
	"golang.org/x/net/http/httpguts"

	"github.com/einlass/einlass/dedup"
)

// appVerdict is what an app says of an event: in a callback, and in answer to the outcome question.
type appVerdict struct {
	Outcome     outcome `json:"outcome"`
	Status      int     `json:"status"`
	ContentType string  `json:"content_type"`
	Body        string  `json:"body"`
}

var errVerdictBody = errors.New("body is above max_receipt")

// verdictLimit bounds the JSON of a verdict whose body is at most max bytes: each may be written as \u00XX.
func verdictLimit(max int64) int64 { return 6*max + 4<<10 }

// parseVerdict reads strict JSON. Members that are not known are an app's own affair.
func parseVerdict(data []byte) (v appVerdict, err error) {
	if err := json.Unmarshal(data, &v); err != nil {
		return appVerdict{}, errors.New("not the JSON of an outcome: an object of outcome (text), status (number), content_type (text) and body (text; JSON goes in as text)") // Go's own text may quote the body
	}
	switch v.Outcome {
	case outcomeCommitted, outcomeAborted, outcomeRejected, outcomePending:
	case "":
		return appVerdict{}, errors.New("outcome is missing: write \"committed\", \"aborted\" or \"rejected\"")
	default:
		return appVerdict{}, errors.New("outcome is none of \"committed\", \"aborted\", \"rejected\"")
	}
	if v.Status == 0 {
		v.Status = http.StatusOK
	}
	if v.Status < 200 || v.Status > 599 || v.Status/100 == 3 {
		return appVerdict{}, fmt.Errorf("status %d cannot be an answer to a webhook", v.Status)
	}
	if len(v.ContentType) > 256 || !httpguts.ValidHeaderFieldValue(v.ContentType) {
		return appVerdict{}, errors.New("content_type is not the value of a header")
	}
	return v, nil
}

// answer is the receipt that the verdict gives, within what the source keeps.
func (v appVerdict) answer(s receiptLimits) dedup.Answer {
	a := dedup.Answer{Status: v.Status, Body: []byte(v.Body)}
	if int64(len(a.Body)) > s.maxReceipt {
		a.Body, a.BodyDropped = nil, true
	}
	if v.ContentType != "" && slices.ContainsFunc(s.receiptHeaders, isContentType) {
		a.Header = []dedup.Field{{Name: "Content-Type", Value: v.ContentType}}
	}
	if len(a.Body) == 0 {
		a.Body = nil
	}
	return a
}

func isContentType(name string) bool { return http.CanonicalHeaderKey(name) == "Content-Type" }

// receiptLimits are what a source keeps of its app's answers.
type receiptLimits struct {
	maxReceipt     int64
	receiptHeaders []string
}

func (s *settings) limits() receiptLimits { return receiptLimits{s.maxReceipt, s.receiptHeaders} }
