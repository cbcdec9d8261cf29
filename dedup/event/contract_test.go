package event

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const counterSchema = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"required": ["event_id", "kind", "value"],
	"additionalProperties": false,
	"properties": {
		"event_id": {"type": "string", "pattern": "^evt-[a-z0-9-]{1,40}$"},
		"kind": {"const": "increment"},
		"value": {"type": "integer", "minimum": 1, "maximum": 100},
		"tags": {"$ref": "#/$defs/tags"}
	},
	"$defs": {"tags": {"type": "array", "items": {"type": "string", "maxLength": 3}}}
}`

func mustContract(t testing.TB, schema string) *Contract {
	t.Helper()
	c, err := CompileContractJSON("event.schema.json", []byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestContractNamesPlaceAndKeyword(t *testing.T) {
	t.Parallel()
	contract := mustContract(t, counterSchema)
	tests := []struct{ name, body, pointer, keyword string }{
		{"what was agreed passes", `{"event_id":"evt-1","kind":"increment","value":1}`, "", ""},
		{"1.0 is an integer", `{"event_id":"evt-1","kind":"increment","value":1.0}`, "", ""},
		{"1e2 is an integer", `{"event_id":"evt-1","kind":"increment","value":1e2}`, "", ""},
		{"a referenced definition holds", `{"event_id":"evt-1","kind":"increment","value":1,"tags":["a"]}`, "", ""},
		{"1.5 is none", `{"event_id":"evt-1","kind":"increment","value":1.5}`, "/value", "type"},
		{"a string of digits is no number", `{"event_id":"evt-1","kind":"increment","value":"1"}`, "/value", "type"},
		{"true is no number", `{"event_id":"evt-1","kind":"increment","value":true}`, "/value", "type"},
		{"null is no number", `{"event_id":"evt-1","kind":"increment","value":null}`, "/value", "type"},
		{"0 is too small", `{"event_id":"evt-1","kind":"increment","value":0}`, "/value", "minimum"},
		{"101 is too large", `{"event_id":"evt-1","kind":"increment","value":101}`, "/value", "maximum"},
		{"another kind", `{"event_id":"evt-1","kind":"decrement","value":1}`, "/kind", "const"},
		{"a missing field", `{"event_id":"evt-1","kind":"increment"}`, "", "required"},
		{"an extra field", `{"event_id":"evt-1","kind":"increment","value":1,"s3cr3t":1}`, "", "additionalProperties"},
		{"a capital in the id", `{"event_id":"evt-A","kind":"increment","value":1}`, "/event_id", "pattern"},
		{"a newline behind the id", `{"event_id":"evt-a\n","kind":"increment","value":1}`, "/event_id", "pattern"},
		{"a fault behind a reference", `{"event_id":"evt-1","kind":"increment","value":1,"tags":["a","s3cr3t"]}`, "/tags/1", "maxLength"},
		{"the first of several faults by place", `{"event_id":"s3cr3t","kind":"s3cr3t","value":0}`, "/event_id", "pattern"},
		{"a body that is no object", `["s3cr3t"]`, "", "type"},
		{"a number that no fraction holds", `{"event_id":"evt-1","kind":"increment","value":1e2000000}`, "/value", "number"},
		{"a number that no fraction holds, negative", `{"a/b":[0,1e-99999999999999999999]}`, "/a~1b/1", "number"},
		{"a number of thousands of digits", `{"value":` + strings.Repeat("1", 2000) + `}`, "/value", "number"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := contract.Check(NewDocument(nil, []byte(tt.body)))
			if tt.keyword == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			var broken *ContractError
			if !errors.As(err, &broken) || broken.Pointer != tt.pointer || broken.Keyword != tt.keyword {
				t.Fatalf("got %v, want %s at %q", err, tt.keyword, tt.pointer)
			}
			if strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("the error quotes the body: %v", err)
			}
		})
	}
	t.Run("a body that is not strict JSON is refused as such", func(t *testing.T) {
		t.Parallel()
		err := contract.Check(NewDocument(nil, []byte(`{"value":1,"Value":1}`)))
		if !errors.Is(err, ErrInvalidJSON) {
			t.Errorf("got %v", err)
		}
	})
}

func TestContractKeywords(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, schema, body, pointer, keyword string }{
		{"false", `false`, `1`, "", "false"},
		{"not", `{"not":{"type":"string"}}`, `"x"`, "", "not"},
		{"anyOf is not gone into", `{"properties":{"a":{"anyOf":[{"type":"string"},{"minimum":9}]}}}`, `{"a":1}`, "/a", "anyOf"},
		{"oneOf", `{"oneOf":[{"type":"number"},{"type":"integer"}]}`, `1`, "", "oneOf"},
		{"allOf is gone into", `{"allOf":[{"minimum":1},{"minimum":2}]}`, `1`, "", "minimum"},
		{"unevaluatedProperties", `{"properties":{"a":true},"unevaluatedProperties":false}`, `{"b":1}`, "/b", "unevaluatedProperties"},
		{"propertyNames", `{"propertyNames":{"maxLength":1}}`, `{"bb":1}`, "", "propertyNames"},
		{"dependentRequired", `{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, "", "dependentRequired"},
		{"contains", `{"contains":{"const":1}}`, `[2]`, "", "contains"},
		{"uniqueItems", `{"uniqueItems":true}`, `[1,1.0]`, "", "uniqueItems"},
		{"multipleOf is exact", `{"multipleOf":0.01}`, `0.005`, "", "multipleOf"},
		{"format is checked", `{"format":"date-time"}`, `"yesterday"`, "", "format"},
		{"an unknown format is not", `{"format":"colour"}`, `"red"`, "", ""},
		{"no $schema means 2020-12", `{"prefixItems":[{"type":"string"}]}`, `[1]`, "/0", "type"},
		{"a recursive reference", `{"$id":"https://example.com/tree","properties":{"kid":{"$ref":"#"}},"required":["n"]}`, `{"n":1,"kid":{}}`, "/kid", "required"},
		{"a reference by the schema's own $id", `{"$id":"https://example.com/a","$ref":"https://example.com/a#/$defs/n","$defs":{"n":{"type":"null"}}}`, `1`, "", "type"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := mustContract(t, tt.schema).Check(NewDocument(nil, []byte(tt.body)))
			var broken *ContractError
			if tt.keyword == "" && err == nil {
				return
			}
			if !errors.As(err, &broken) || broken.Pointer != tt.pointer || broken.Keyword != tt.keyword {
				t.Errorf("got %v, want %q at %q", err, tt.keyword, tt.pointer)
			}
		})
	}
}

func TestContractsThatDoNotCompile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	beside := filepath.Join(dir, "other.json")
	if err := os.WriteFile(beside, []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, schema := range map[string]string{
		"not JSON":                 `{`,
		"a name that stands twice": `{"required":["a"],"required":["b"]}`,
		"no schema":                `[]`,
		"a keyword's wrong type":   `{"required":"a"}`,
		"a pattern Go cannot read": `{"pattern":"(?=x)"}`,
		"a missing definition":     `{"$ref":"#/$defs/x"}`,
		"a file beside it":         `{"$ref":"other.json"}`,
		"a file by its path":       `{"$ref":"file://` + beside + `"}`,
		"the network":              `{"$ref":"https://example.com/schema.json"}`,
		"a dialect of the network": `{"$schema":"https://example.com/dialect"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".schema.json")
			if err := os.WriteFile(path, []byte(schema), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := CompileContract(path)
			if err == nil || !strings.Contains(err.Error(), filepath.Base(path)) {
				t.Errorf("got %v, want an error with the file's name", err)
			}
		})
	}
	if _, err := CompileContract(filepath.Join(dir, "missing.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestContractIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	contract := mustContract(t, counterSchema)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				good := contract.Check(NewDocument(nil, []byte(`{"event_id":"evt-1","kind":"increment","value":1}`)))
				bad := contract.Check(NewDocument(nil, []byte(`{"event_id":"evt-1","kind":"increment","value":0}`)))
				if good != nil || bad == nil {
					t.Errorf("got %v and %v", good, bad)
				}
			}
		})
	}
	wg.Wait()
}

func TestContractErrorsStayShort(t *testing.T) {
	t.Parallel()
	err := &ContractError{Pointer: "/" + strings.Repeat("x", 5000) + "\n", Keyword: "type"}
	if text := err.Error(); len(text) > 300 || strings.Contains(text, "\n") {
		t.Errorf("got %d bytes: %s", len(text), text)
	}
}
