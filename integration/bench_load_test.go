package integration

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/einlass/einlass/integration/internal/proc"
)

// The benchmark's sender writes ready-made requests on raw connections and reads no more of an answer than it
// must: on two cores an HTTP client would cost more than what is measured.

// benchBody is the size of a usual webhook.
const benchBody = 1 << 10

// rawPush gives the bytes of a delivery as GitHub sends it, rightly signed or not.
func rawPush(id string, right bool) []byte {
	body := make([]byte, 0, benchBody)
	body = fmt.Appendf(body, `{"id":%q,"text":"`, id)
	body = append(body, bytes.Repeat([]byte("x"), benchBody-len(body)-2)...)
	body = append(body, `"}`...)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	signature := mac.Sum(nil)
	if !right {
		signature[0] ^= 1
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST /hook HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	fmt.Fprintf(&b, "X-GitHub-Delivery: %s\r\nX-GitHub-Event: push\r\nX-Hub-Signature-256: sha256=%s\r\n\r\n", id, hex.EncodeToString(signature))
	b.Write(body)
	return b.Bytes()
}

// hammer sends requests on one connection until end and gives how long each answer took.
func hammer(addr string, end time.Time, request func() []byte, status string) ([]time.Duration, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(end.Add(proc.Patience)); err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(conn, 16<<10)
	var took []time.Duration
	for {
		began := time.Now()
		if !began.Before(end) && len(took) > 0 {
			return took, nil
		}
		if _, err := conn.Write(request()); err != nil {
			return nil, err
		}
		got, err := readAnswer(r)
		if err != nil {
			return nil, err
		}
		if got != status {
			return nil, fmt.Errorf("got status %s, want %s", got, status)
		}
		took = append(took, time.Since(began))
	}
}

var contentLength = []byte("Content-Length: ")

// readAnswer reads one HTTP/1.1 answer with a Content-Length and gives its status.
func readAnswer(r *bufio.Reader) (string, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return "", err
	}
	if len(line) < 12 {
		return "", fmt.Errorf("odd status line %q", line)
	}
	status := string(line[9:12])
	length := -1
	for {
		line, err = r.ReadSlice('\n')
		if err != nil {
			return "", err
		}
		if len(line) <= 2 {
			break
		}
		if rest, ok := bytes.CutPrefix(line, contentLength); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(rest))); err != nil {
				return "", err
			}
		}
	}
	if length < 0 {
		return "", fmt.Errorf("an answer %s without Content-Length", status)
	}
	_, err = io.CopyN(io.Discard, r, int64(length))
	return status, err
}

// waitListening waits until somebody listens on addr.
func waitListening(tb testing.TB, addr string) {
	tb.Helper()
	for end := time.Now().Add(proc.Patience); time.Now().Before(end); {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	tb.Fatalf("nobody listens on %s", addr)
}
