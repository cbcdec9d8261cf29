package caddy

import (
	"errors"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/einlass/einlass/verifier"
)

// verifiersNamespace is where guest verifiers register.
const verifiersNamespace = "webhook_gate.verifiers"

// Verifier is what modules in the namespace `webhook_gate.verifiers` implement. In a Caddyfile the module
// gets its name, its arguments and, in the block form, its block.
type Verifier interface {
	caddy.Module

	// Scheme gives the ready scheme and what is known about its sender. It is called once, after
	// provisioning, and the scheme serves many requests at a time.
	Scheme() (verifier.Verifier, verifier.Facts)
}

func init() {
	for _, p := range verifier.Presets() {
		caddy.RegisterModule(&Preset{preset: p})
	}
}

// Preset verifies one known sender's deliveries and brings what is known about that sender: where the event
// id and type stand, whether the id is signed, the sender's deadline, retries and handshake.
type Preset struct {
	Keys

	// How far the signed time may be from now, in both directions. Default: the sender's own.
	Tolerance caddy.Duration `json:"tolerance,omitempty"`

	preset *verifier.Preset
	scheme verifier.Verifier
}

// CaddyModule returns the Caddy module information.
func (p *Preset) CaddyModule() caddy.ModuleInfo {
	preset := p.preset
	return caddy.ModuleInfo{
		ID:  caddy.ModuleID(verifiersNamespace + "." + preset.Name),
		New: func() caddy.Module { return &Preset{preset: preset} },
	}
}

// Provision resolves the secrets and compiles the scheme.
func (p *Preset) Provision(ctx caddy.Context) error {
	secrets, err := p.provision(ctx)
	if err != nil {
		return err
	}
	p.scheme, err = p.compile(secrets)
	return err
}

func (p *Preset) compile(secrets []verifier.Secret) (verifier.Verifier, error) {
	return p.preset.New(verifier.Options{Secrets: secrets, Tolerance: time.Duration(p.Tolerance)})
}

// Scheme gives the compiled scheme and the sender's facts.
func (p *Preset) Scheme() (verifier.Verifier, verifier.Facts) { return p.scheme, p.preset.Facts }

// UnmarshalCaddyfile sets up the preset from Caddyfile tokens:
//
//	<preset> [<secret>...] {
//		secret    <value> [until <RFC 3339>]
//		tolerance <duration>
//	}
func (p *Preset) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // preset name
	p.unmarshalArgs(d)
	for d.NextBlock(0) {
		switch d.Val() {
		case "secret":
			if err := p.unmarshalSecret(d); err != nil {
				return err
			}
		case "tolerance":
			if err := unmarshalDuration(d, &p.Tolerance); err != nil {
				return err
			}
		default:
			return unknownWord(d, "verify "+p.preset.Name, "secret", "tolerance")
		}
	}
	return p.checkLiterals(d, p.compile)
}

// None lets every delivery through unverified. It warns at every start.
type None struct{}

func init() {
	caddy.RegisterModule(new(None))
}

// CaddyModule returns the Caddy module information.
func (*None) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  verifiersNamespace + ".none",
		New: func() caddy.Module { return new(None) },
	}
}

// Provision warns.
func (*None) Provision(ctx caddy.Context) error {
	ctx.Logger().Warn("verify none: every delivery is let in, whoever sent it")
	return nil
}

// Scheme gives the scheme that accepts everything.
func (*None) Scheme() (verifier.Verifier, verifier.Facts) {
	return verifier.None{}, verifier.Facts{}
}

// UnmarshalCaddyfile takes the word alone: none.
func (*None) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // name
	if d.NextArg() || d.NextBlock(0) {
		return d.Errf("verify none takes no arguments: it checks nothing")
	}
	return nil
}

// unmarshalVerifier parses a guest verifier from a dispenser of its own, whose first token is its name.
func unmarshalVerifier(d, own *caddyfile.Dispenser, name string) (Verifier, error) {
	info, err := caddy.GetModule(verifiersNamespace + "." + name)
	if err != nil {
		return nil, d.WrapErr(unknownVerifier(name))
	}
	module := info.New()
	v, ok := module.(Verifier)
	if !ok {
		return nil, d.Errf("verifier %s: module %T does not implement the gate's Verifier interface", name, module)
	}
	unmarshaler, ok := module.(caddyfile.Unmarshaler)
	if !ok {
		return nil, d.Errf("verifier %s cannot be set up in a Caddyfile: use JSON", name)
	}
	return v, unmarshaler.UnmarshalCaddyfile(own)
}

// unknownVerifier repeats the word only where it is near a known one: it may be a secret in the wrong place.
func unknownVerifier(name string) error {
	if near := verifier.NearestPreset(name); near != "" {
		return fmt.Errorf("unknown verifier %q: did you mean `%s`?", name, near)
	}
	return errors.New("unknown verifier: write the sender's name before its secret, `hmac` for any other keyed digest, or `none`")
}

// Interface guards
var (
	_ Verifier              = (*Preset)(nil)
	_ caddy.Provisioner     = (*Preset)(nil)
	_ caddyfile.Unmarshaler = (*Preset)(nil)
	_ Verifier              = (*None)(nil)
	_ caddy.Provisioner     = (*None)(nil)
	_ caddyfile.Unmarshaler = (*None)(nil)
)
