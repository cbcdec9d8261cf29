package caddy

import (
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/einlass/einlass/dedup"
)

const appName = "webhook_gate"

func init() {
	caddy.RegisterModule(new(App))
}

// App owns the store of receipts that all gates of a config share. Without this app in the config, the
// first `webhook_gate` handler brings it in with its defaults.
type App struct {
	// Where receipts are kept. Default: `bolt` in Caddy's data directory.
	StoreRaw json.RawMessage `json:"store,omitempty" caddy:"namespace=webhook_gate.stores inline_key=backend"`

	ctx       caddy.Context
	logger    *zap.Logger
	store     Store
	key       string
	sources   map[string]sourceUse
	callbacks int    // handlers that apps confirm at
	using     *usage // of the store, while Start's hold is to be given back
}

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  appName,
		New: func() caddy.Module { return new(App) },
	}
}

// Provision sets up the app. It opens nothing: `caddy validate` must work beside a running gate.
func (a *App) Provision(ctx caddy.Context) error {
	a.ctx = ctx
	a.logger = ctx.Logger()
	a.sources = make(map[string]sourceUse)
	if a.StoreRaw == nil {
		a.StoreRaw = json.RawMessage(`{"backend":"bolt"}`)
	}
	mod, err := ctx.LoadModule(a, "StoreRaw")
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	store, ok := mod.(Store)
	if !ok {
		return fmt.Errorf("store: module %T does not implement the webhook gate's Store interface", mod)
	}
	a.store = store
	a.key = string(store.CaddyModule().ID) + ":" + store.Key()
	return nil
}

// gateApp is the app that a handler of the same config belongs to.
func gateApp(ctx caddy.Context) (*App, error) {
	mod, err := ctx.App(appName)
	if err != nil {
		return nil, err
	}
	app, ok := mod.(*App)
	if !ok {
		return nil, fmt.Errorf("app %s is a %T, not the gate's own", appName, mod)
	}
	return app, nil
}

// sourceUse is how a gate of this config uses a source.
type sourceUse struct {
	fingerprint [32]byte // of its verifier's config
	written     bool     // the operator wrote the name; it is not the verifier's
	commit      string   // how it and its app agree on an outcome, in words that can be compared
	callback    *url.URL // where its app confirms; nil for `confirm response`
	policy      dedup.Policy
	limits      receiptLimits
}

// registerSource refuses two gates that share a source unawares: what one has seen, the other's app would never get.
// They may share one on purpose, under a name that both of them write, with the same verifier and secrets.
// Handlers of a config are provisioned one after the other.
func (a *App) registerSource(name string, use sourceUse) error {
	known, taken := a.sources[name]
	a.sources[name] = use
	switch {
	case !taken:
		return nil
	case known.fingerprint != use.fingerprint:
		return fmt.Errorf("source %q is used by two gates with different verifiers or secrets: give one of them another name with `source <name>`", name)
	case known.commit != use.commit:
		return fmt.Errorf("source %q is used by two gates that differ in `confirm`, `outcome`, `in_doubt`, `lease`, `max_receipt` or `receipt_headers`: write the same in both, or give one of them another name with `source <name>`", name)
	case !known.written || !use.written:
		return fmt.Errorf("two gates would share source %q, and an event that one of them has seen would not reach the other's app: give them names with `source <name>`, or both the same name if that is meant", name)
	}
	return nil
}

// limits are what a source keeps of its app's answers; one that this config does not have, what is kept by default.
func (a *App) limits(source string) receiptLimits {
	if use, ok := a.sources[source]; ok {
		return use.limits
	}
	return receiptLimits{defaultMaxReceipt, []string{"Content-Type"}}
}

// Start opens the store, unless a request or an earlier config already has, and resolves what is in doubt by this
// config from now on. Here at last every handler is known.
func (a *App) Start() error {
	if err := a.checkHandlers(); err != nil {
		return err
	}
	shared, err := a.hold()
	if err != nil {
		return err
	}
	policies := make(map[string]dedup.Policy, len(a.sources))
	for name, use := range a.sources {
		policies[name] = use.policy
	}
	a.using = shared.use(policies)
	return nil
}

// checkHandlers refuses what only the handlers of the config together show to be wrong.
func (a *App) checkHandlers() error {
	for name, use := range a.sources {
		if use.callback != nil && a.callbacks == 0 {
			return fmt.Errorf("source %q: confirm callback needs a place where the app confirms: write a site with that address, such as `http://127.0.0.1:9081`, and in it `bind 127.0.0.1` and `webhook_gate_callback`", name)
		}
	}
	app, err := a.ctx.AppIfConfigured("http")
	if err != nil {
		return nil //nolint:nilerr // no http app, no handlers
	}
	httpApp, ok := app.(*caddyhttp.App)
	if !ok {
		return nil
	}
	for name, use := range a.sources {
		if use.callback != nil && misrouted(httpApp, *use.callback) {
			a.logger.Warn("the URL of confirm callback reaches no webhook_gate_callback of this config: unless something in between leads it there, confirmations are lost; write a site with this very address, and in it `webhook_gate_callback`",
				zap.String("source", name), zap.String("url", use.callback.String()))
		}
	}
	return checkRetries(httpApp)
}

// Stop gives the store back. It waits for nothing: requests and attempts hold the store themselves, and what is
// running when the process is to end is waited for in drainAtExit, when nothing new can come in any more.
func (a *App) Stop() error {
	if caddy.Exiting() {
		a.limitExit()
	}
	if a.using != nil {
		a.using.end()
		a.using = nil
		a.release()
	}
	return nil
}

// limitExit sets when the waiting at the end of the process is over: the http app's grace_period from now. Without
// one, attempts end by their own forward_timeout.
func (a *App) limitExit() {
	app, err := a.ctx.AppIfConfigured("http")
	if err != nil {
		return
	}
	if httpApp, ok := app.(*caddyhttp.App); ok && httpApp.GracePeriod > 0 {
		end := time.Now().Add(time.Duration(httpApp.GracePeriod))
		exitLimit.Store(&end)
	}
}

// Interface guards
var (
	_ caddy.App         = (*App)(nil)
	_ caddy.Provisioner = (*App)(nil)
)
