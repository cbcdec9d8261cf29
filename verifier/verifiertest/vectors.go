package verifiertest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/einlass/einlass/verifier"
)

// VectorFile is the signed deliveries of one sender, with the verdicts of that
// sender's own library.
type VectorFile struct {
	Provider string   `json:"provider"`
	SDK      string   `json:"sdk"`
	Cases    []Vector `json:"cases"`
}

// Vector is one delivery with its verdict.
type Vector struct {
	ID string `json:"id"`
	// Secret is a string for shared secrets, else an object of keys.
	Secret json.RawMessage `json:"secret"`
	// More are further accepted secrets, of the same shape.
	More    []json.RawMessage `json:"secrets"`
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers [][2]string       `json:"headers"`
	Body64  string            `json:"body_base64"`
	Now     float64           `json:"now"` // Unix seconds
	Expect  string            `json:"expect"`
	Why     string            `json:"why"`
	Tags    []string          `json:"tags"`
}

// LoadVectors reads every *.json of dir, sorted by name. No file is an error.
func LoadVectors(dir string) ([]VectorFile, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no vector file in %s", dir)
	}
	slices.Sort(names)
	files := make([]VectorFile, 0, len(names))
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var file VectorFile
		if err := json.Unmarshal(raw, &file); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if file.Provider == "" || len(file.Cases) == 0 {
			return nil, fmt.Errorf("%s: no provider or no cases", name)
		}
		files = append(files, file)
	}
	return files, nil
}

// Valid is the verdict.
func (v Vector) Valid() bool { return v.Expect == "valid" }

// Tagged reports whether the case has one of tags.
func (v Vector) Tagged(tags ...string) bool {
	return slices.ContainsFunc(tags, func(tag string) bool { return slices.Contains(v.Tags, tag) })
}

// Secrets returns all accepted secrets; false where one is not text. A blank one
// stays as the zero Secret, which every family must refuse.
func (v Vector) Secrets() ([]verifier.Secret, bool) {
	var secrets []verifier.Secret
	for _, raw := range append([]json.RawMessage{v.Secret}, v.More...) {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return nil, false
		}
		secret, _ := verifier.NewSecret(text, time.Time{})
		secrets = append(secrets, secret)
	}
	return secrets, true
}

// Request returns the delivery with its body.
func (v Vector) Request() (verifier.Request, []byte, error) {
	body, err := base64.StdEncoding.DecodeString(v.Body64)
	if err != nil {
		return verifier.Request{}, nil, fmt.Errorf("%s: body: %w", v.ID, err)
	}
	header := http.Header{}
	for _, field := range v.Headers {
		header.Add(field[0], field[1])
	}
	return verifier.Request{
		Method: v.Method,
		URL:    v.URL,
		Header: header,
		Now:    time.UnixMilli(int64(v.Now * 1000)),
	}, body, nil
}
