package caddy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/einlass/einlass/dedup"
	"github.com/einlass/einlass/dedup/failpoint"
)

// askTimeout is how long the app has for an answer to the outcome question.
const askTimeout = 5 * time.Second

// askedBody is what is read of an answer at least: a body above max_receipt is dropped, but the rest of what the app says
// counts. Nothing else could ever settle the event.
const askedBody = 16 << 20

// asker puts the outcome question to the app of one gate, at the URL of `outcome`.
type asker struct {
	at     url.URL
	limits receiptLimits
	client *http.Client
}

var _ dedup.Asker = (*asker)(nil)

// newAsker makes an asker with connections of its own. No proxy of the environment is used: the app is near, and the
// question holds a token.
func newAsker(at url.URL, limits receiptLimits) *asker {
	return &asker{at: at, limits: limits, client: &http.Client{
		Transport: &http.Transport{
			DialContext:            (&net.Dialer{Timeout: 3 * time.Second}).DialContext,
			TLSHandshakeTimeout:    3 * time.Second,
			IdleConnTimeout:        30 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// close lets go of idle connections.
func (a *asker) close() { a.client.CloseIdleConnections() }

// Ask implements [dedup.Asker].
func (a *asker) Ask(ctx context.Context, q dedup.Question) (dedup.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	resp, err := a.put(ctx, q)
	if err != nil {
		return dedup.Reply{}, err
	}
	defer func() {
		// Read to its end, or Go gives the connection up, and a thousand questions take a thousand ports.
		_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
		_ = resp.Body.Close()
	}()
	switch resp.StatusCode {
	case http.StatusOK:
		return a.read(resp.Body)
	case http.StatusAccepted:
		return dedup.Reply{Kind: dedup.ReplyPending}, nil
	case http.StatusNotFound:
		return dedup.Reply{Kind: dedup.ReplyAbsent}, nil
	case http.StatusGone:
		return dedup.Reply{Kind: dedup.ReplyFenced}, nil
	}
	if resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests {
		return dedup.Reply{}, fmt.Errorf("%w: it answers with %d", dedup.ErrUnreachable, resp.StatusCode)
	}
	return dedup.Reply{}, fmt.Errorf("the app answered the outcome question with %d; it understands 200, 202, 404 and 410", resp.StatusCode)
}

func (a *asker) put(ctx context.Context, q dedup.Question) (*http.Response, error) {
	at := a.at
	query := at.Query()
	query.Set("source", q.Key.Source)
	query.Set("event", q.Key.Event)
	at.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, errors.New("outcome: not a URL that can be asked")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "Einlass")
	req.Header.Set(headerAttempt, strconv.FormatUint(uint64(q.Count), 10))
	if q.Token != "" {
		req.Header.Set(headerToken, q.Token)
	}
	failpoint.Hit(failpoint.OutcomeBefore)
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, unreachable(err)
	}
	failpoint.Hit(failpoint.OutcomeAnswered)
	return resp, nil
}

// read reads the JSON of a 200.
func (a *asker) read(r io.Reader) (dedup.Reply, error) {
	limit := max(verdictLimit(a.limits.maxReceipt), askedBody)
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return dedup.Reply{}, unreachable(err)
	}
	if int64(len(data)) > limit {
		return dedup.Reply{}, fmt.Errorf("the app's answer to the outcome question is above %d bytes", limit)
	}
	v, err := parseVerdict(data)
	if err != nil {
		return dedup.Reply{}, fmt.Errorf("the app's answer to the outcome question: %w", err)
	}
	switch v.Outcome {
	case outcomeCommitted:
		return dedup.Reply{Kind: dedup.ReplyCommitted, Answer: v.answer(a.limits)}, nil
	case outcomeRejected:
		return dedup.Reply{Kind: dedup.ReplyRejected, Answer: v.answer(a.limits)}, nil
	case outcomePending:
		return dedup.Reply{Kind: dedup.ReplyPending}, nil
	default: // aborted: nothing was done, but the attempt is not closed
		return dedup.Reply{Kind: dedup.ReplyAbsent}, nil
	}
}

// unreachable says why there was no answer, without what the app may have sent.
func unreachable(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return fmt.Errorf("%w: %s", dedup.ErrUnreachable, errorText(err))
}
