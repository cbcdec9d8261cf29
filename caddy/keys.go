package caddy

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/einlass/einlass/verifier"
)

// Keys is the part of a verifier's config that holds its secrets.
type Keys struct {
	// The accepted secrets. Several are accepted at once while one is rotated; the log tells which one
	// matched. At least one is required.
	Secrets []SecretConfig `json:"secrets,omitempty"`
}

// SecretConfig is one accepted secret.
type SecretConfig struct {
	// The secret as the sender shows it. Use a placeholder such as `{env.GITHUB_SECRET}` or
	// `{file./run/secrets/github}`, so that the secret itself stays out of the config. Both are read when the
	// config is loaded.
	Value string `json:"value,omitempty"`

	// When the secret stops being accepted (RFC 3339). Default: never.
	Until string `json:"until,omitempty"`
}

// provision resolves the secrets and says which of them are over already. That is no reason to refuse a config:
// it would keep a server from starting some day that has started so far.
func (k *Keys) provision(ctx caddy.Context) ([]verifier.Secret, error) {
	secrets, err := k.resolve(caddy.NewReplacer())
	if err != nil {
		return nil, err
	}
	active, now := 0, time.Now()
	for i, s := range secrets {
		if s.Active(now) {
			active++
			continue
		}
		ctx.Logger().Warn("this secret's `until` is over: it is not accepted any more", zap.Int("secret", i+1), zap.Time("until", s.Until()))
	}
	if active == 0 {
		ctx.Logger().Error("every secret's `until` is over: no delivery can be authenticated")
	}
	return secrets, nil
}

// resolve replaces the placeholders and refuses what would end as an empty or unintended key.
func (k *Keys) resolve(repl *caddy.Replacer) ([]verifier.Secret, error) {
	if len(k.Secrets) == 0 {
		return nil, errors.New("no secret: write the secret behind the verifier's name or as `secret <value>`, such as `secret {env.WEBHOOK_SECRET}`")
	}
	secrets := make([]verifier.Secret, 0, len(k.Secrets))
	for i, c := range k.Secrets {
		secret, err := c.resolve(repl)
		if err != nil {
			return nil, fmt.Errorf("secret %d: %w", i+1, err)
		}
		secrets = append(secrets, secret)
	}
	return secrets, nil
}

func (c SecretConfig) resolve(repl *caddy.Replacer) (verifier.Secret, error) {
	until, err := c.until()
	if err != nil {
		return verifier.Secret{}, err
	}
	value, err := repl.ReplaceOrErr(c.Value, true, true)
	if err != nil {
		return verifier.Secret{}, placeholderError(c.Value, err)
	}
	return verifier.NewSecret(value, until)
}

// placeholderError says what to do. Only the placeholder's name is repeated, nothing it stands for; a text
// that merely contains a brace is not repeated at all, it may be the secret itself.
func placeholderError(text string, err error) error {
	switch {
	case strings.HasPrefix(text, "{env.") && strings.HasSuffix(text, "}"):
		return fmt.Errorf("%w: set that environment variable where Caddy runs", err)
	case strings.HasPrefix(text, "{file.") && strings.HasSuffix(text, "}"):
		return fmt.Errorf("%w: is the file there, readable for Caddy and not empty?", err)
	}
	return errors.New("an unknown or empty placeholder: write {env.NAME} or {file./path}; a brace that belongs to the secret is written as \\{ or \\}")
}

func (c SecretConfig) until() (time.Time, error) {
	if c.Until == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, c.Until)
	if err != nil {
		return time.Time{}, fmt.Errorf("until %q is not a time: write it as in `until 2026-12-31T00:00:00Z`", c.Until)
	}
	return t, nil
}

// literal tells a secret that is written out, which can be checked without looking at the environment.
func (c SecretConfig) literal() bool { return !strings.Contains(c.Value, "{") }

func (k *Keys) unmarshalArgs(d *caddyfile.Dispenser) {
	for d.NextArg() {
		k.Secrets = append(k.Secrets, SecretConfig{Value: d.Val()})
	}
}

// unmarshalSecret parses: secret <value> [until <RFC 3339>]
func (k *Keys) unmarshalSecret(d *caddyfile.Dispenser) error {
	var c SecretConfig
	if !d.NextArg() {
		return d.Errf("secret needs a value, such as `secret {env.WEBHOOK_SECRET}`")
	}
	c.Value = d.Val()
	if d.NextArg() {
		if d.Val() != "until" || !d.NextArg() {
			return d.Errf("after a secret's value only `until <RFC 3339 time>` may follow; write each secret on a line of its own")
		}
		c.Until = d.Val()
	}
	if d.NextArg() {
		return d.Errf("too many words after secret: write `secret <value> [until <RFC 3339 time>]`")
	}
	k.Secrets = append(k.Secrets, c)
	return nil
}

// checkLiterals refuses, with file and line, what can be seen without the environment: no secret, an empty
// one, a malformed one.
func (k *Keys) checkLiterals(d *caddyfile.Dispenser, compile func([]verifier.Secret) (verifier.Verifier, error)) error {
	if len(k.Secrets) == 0 {
		_, err := k.resolve(nil)
		return d.WrapErr(err)
	}
	repl := caddy.NewEmptyReplacer()
	for i, c := range k.Secrets {
		if _, err := c.until(); err != nil {
			return d.WrapErr(fmt.Errorf("secret %d: %w", i+1, err))
		}
		if !c.literal() {
			continue
		}
		secret, err := c.resolve(repl)
		if err == nil {
			_, err = compile([]verifier.Secret{secret})
		}
		if err != nil {
			return d.WrapErr(fmt.Errorf("secret %d: %w", i+1, err))
		}
	}
	return nil
}
