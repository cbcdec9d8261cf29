package verifier

import "errors"

// None accepts every delivery: it is for sources whose authenticity something
// else has established. It is its own family and verifier.
type None struct{}

var (
	_ Family   = None{}
	_ Verifier = None{}
)

// New returns None. Secrets and a tolerance are refused: whoever sets them
// believes that something is checked.
func (None) New(o Options) (Verifier, error) {
	if len(o.Secrets) > 0 || o.Tolerance != 0 {
		return nil, errors.New("nothing is verified, so a secret or a tolerance has no effect")
	}
	return None{}, nil
}

// Begin accepts.
func (None) Begin(Request) (Check, error) { return noneCheck{}, nil }

type noneCheck struct{}

func (noneCheck) Write(p []byte) (int, error) { return len(p), nil }

func (noneCheck) Finish([]byte) (Result, error) { return Result{Secret: -1}, nil }
