package event

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// contractURL is what the schema calls itself inside the compiler. It has no scheme that anything loads.
const contractURL = "contract:///schema.json"

// Contract is what an app and its senders have agreed an event to be: a JSON Schema, draft 2020-12 unless its
// $schema names another. It is safe for concurrent use.
//
// The keyword `format` is checked, which draft 2020-12 leaves to the implementation: who writes it into a
// contract means it. Patterns are Go's (RE2), which take linear time.
type Contract struct {
	schema *jsonschema.Schema
}

// CompileContract reads a schema from a file.
func CompileContract(path string) (*Contract, error) {
	schema, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("contract: %w", err)
	}
	return CompileContractJSON(filepath.Base(path), schema)
}

// CompileContractJSON compiles a schema; name is how errors call it. References must stay inside the schema:
// nothing is loaded from files or the network.
func CompileContractJSON(name string, schema []byte) (*Contract, error) {
	// The schema is read as strictly as what it checks: a name that stands twice would silently drop a rule.
	if err := checkStrict(schema); err != nil {
		return nil, fmt.Errorf("contract %s: %w", name, err)
	}
	doc, err := decode(schema)
	if err != nil {
		return nil, fmt.Errorf("contract %s: %w", name, err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	compiler.UseLoader(nothingElse{})
	if err := compiler.AddResource(contractURL, doc); err != nil {
		return nil, fmt.Errorf("contract %s: %w", name, err)
	}
	compiled, err := compiler.Compile(contractURL)
	if err != nil {
		return nil, fmt.Errorf("contract %s: %w", name, err)
	}
	return &Contract{schema: compiled}, nil
}

// nothingElse is a loader that refuses what the schema refers to outside of itself.
type nothingElse struct{}

func (nothingElse) Load(url string) (any, error) {
	return nil, fmt.Errorf("it refers to %s: put what is referred to under $defs and write `#/$defs/name`", strings.TrimPrefix(url, "contract:///"))
}

// Check holds a delivery's body against the contract. Errors: one that wraps [ErrInvalidJSON], or a
// [*ContractError].
func (c *Contract) Check(d *Document) error {
	if err := d.JSON(); err != nil {
		return err
	}
	value, err := decode(d.body)
	if err != nil {
		return err
	}
	err = c.schema.Validate(value)
	if err == nil {
		return nil
	}
	var violation *jsonschema.ValidationError
	if !errors.As(err, &violation) {
		return &ContractError{Keyword: "schema"}
	}
	return firstViolation(violation)
}
