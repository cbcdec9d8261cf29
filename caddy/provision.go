package caddy

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/einlass/einlass/verifier"
)

// Provision sets up the handler.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Logger()
	h.scheme = schemeName(h.VerifyRaw)
	if err := h.checkWords(); err != nil {
		return h.named(err)
	}
	// Taken before the module is loaded, which frees the raw JSON.
	fingerprint := sha256.Sum256(h.VerifyRaw)
	name, err := h.loadVerifier(ctx)
	if err != nil {
		return h.named(fmt.Errorf("verify: %w", err))
	}
	if h.set, err = h.resolve(name, h.facts); err != nil {
		return h.named(err)
	}
	if h.app, err = gateApp(ctx); err != nil {
		return err
	}
	if err := h.app.registerSource(h.set.source, sourceUse{
		fingerprint: fingerprint,
		written:     h.Source != "",
		commit:      h.set.commitWords(),
		callback:    h.set.callback,
		policy:      h.set.policy,
		limits:      h.set.limits(),
	}); err != nil {
		return err
	}
	h.warn()
	h.steps = h.way()
	return nil
}

// Cleanup lets go of the connections for the outcome question.
func (h *Handler) Cleanup() error {
	if a, ok := h.set.policy.Asker.(*asker); ok {
		a.close()
	}
	return nil
}

// loadVerifier loads the guest module and gives its name.
func (h *Handler) loadVerifier(ctx caddy.Context) (string, error) {
	mod, err := ctx.LoadModule(h, "VerifyRaw")
	if err != nil {
		return "", err
	}
	v, ok := mod.(Verifier)
	if !ok {
		return "", fmt.Errorf("module %T does not implement the gate's Verifier interface", mod)
	}
	name := v.CaddyModule().ID.Name()
	if h.verifier, h.facts = v.Scheme(); h.verifier == nil {
		return "", fmt.Errorf("module %s gave no scheme", name)
	}
	return name, nil
}

// schemeName gives the verifier's name from its JSON, for messages; whether it is right is not judged here.
func schemeName(raw json.RawMessage) string {
	var verify struct{ Scheme string }
	_ = json.Unmarshal(raw, &verify)
	return verify.Scheme
}

// named says which source an error is about, where it has a name.
func (h *Handler) named(err error) error {
	name := h.Source
	if name == "" {
		name = h.scheme
	}
	if name == "" {
		return err
	}
	return fmt.Errorf("source %q: %w", name, err)
}

// warn says at every start what is allowed but likely to hurt.
func (h *Handler) warn() {
	log := h.logger.With(zap.String("source", h.set.source))
	if deadline := h.facts.Deadline; deadline > 0 && h.set.answerWithin > deadline {
		log.Warn("answer_within is above the sender's own deadline: it gives up before it is answered",
			zap.Duration("answer_within", h.set.answerWithin), zap.Duration("deadline", deadline))
	}
	if h.facts.Retries == verifier.No {
		log.Warn("this sender never tries again by itself: a delivery that fails must be redelivered by hand")
	}
	if h.set.answerWithin > h.set.policy.Lease {
		log.Warn("answer_within is above lease: a confirmation that comes after the lease reaches the receipt, not the sender who waits",
			zap.Duration("answer_within", h.set.answerWithin), zap.Duration("lease", h.set.policy.Lease))
	}
	if h.Wait != 0 && h.set.wait > h.set.answerWithin {
		log.Warn("wait is above answer_within: a repeat waits no longer than answer_within",
			zap.Duration("wait", h.set.wait), zap.Duration("answer_within", h.set.answerWithin))
	}
}

// Interface guards
var (
	_ caddy.Provisioner  = (*Handler)(nil)
	_ caddy.CleanerUpper = (*Handler)(nil)
)
