package caddy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/einlass/einlass/dedup"
	"github.com/einlass/einlass/verifier"
)

func init() {
	caddy.RegisterModule(new(guestVerifier))
	caddy.RegisterModule(new(guestStore))
}

// guestVerifier is a verifier as a third party would write it.
type guestVerifier struct {
	Word string `json:"word,omitempty"`
}

func (*guestVerifier) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "webhook_gate.verifiers.guest", New: func() caddy.Module { return new(guestVerifier) }}
}

func (*guestVerifier) Scheme() (verifier.Verifier, verifier.Facts) {
	return verifier.None{}, verifier.Facts{EventID: "json /id"}
}

func (g *guestVerifier) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	for d.NextBlock(0) {
		if d.Val() != "word" || !d.AllArgs(&g.Word) {
			return d.ArgErr()
		}
	}
	return nil
}

// guestStore is a store as a third party would write it.
type guestStore struct{}

func (*guestStore) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "webhook_gate.stores.guest", New: func() caddy.Module { return new(guestStore) }}
}
func (*guestStore) Key() string                                   { return "guest" }
func (*guestStore) Open() (dedup.Store, error)                    { return dedup.NewMemory(), nil }
func (*guestStore) UnmarshalCaddyfile(*caddyfile.Dispenser) error { return nil }

func TestGuestsOfThirdPartiesAreLetIn(t *testing.T) {
	t.Parallel()
	text := `{
	admin off
	webhook_gate {
		store guest
	}
}
http://127.0.0.1:0 {
	webhook_gate {
		verify guest {
			word sesame
		}
	}
}
`
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"scheme":"guest"`, `"word":"sesame"`, `"backend":"guest"`} {
		if !strings.Contains(string(adapted), part) {
			t.Errorf("the JSON lacks %s:\n%s", part, adapted)
		}
	}
	var config caddy.Config
	if err := json.Unmarshal(adapted, &config); err != nil {
		t.Fatal(err)
	}
	if err := caddy.Validate(&config); err != nil {
		t.Fatal(err)
	}
}
