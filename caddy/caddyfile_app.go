package caddy

import (
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
)

func init() {
	httpcaddyfile.RegisterGlobalOption("webhook_gate", parseGlobalOption)
}

// parseGlobalOption sets up the app from the global option. Syntax:
//
//	webhook_gate {
//		store bolt [<path>]
//	}
func parseGlobalOption(d *caddyfile.Dispenser, existing any) (any, error) {
	if existing != nil {
		return nil, d.Err("webhook_gate already specified: one global block sets up all gates of this config")
	}
	app := new(App)
	if err := app.UnmarshalCaddyfile(d); err != nil {
		return nil, err
	}
	return httpcaddyfile.App{Name: appName, Value: caddyconfig.JSON(app, nil)}, nil
}

// UnmarshalCaddyfile sets up the app from Caddyfile tokens; see parseGlobalOption for the syntax.
func (a *App) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // option name
	if d.NextArg() {
		return d.Errf("the global option webhook_gate takes a block only, got %q", d.Val())
	}
	for d.NextBlock(0) {
		switch d.Val() {
		case "store":
			if a.StoreRaw != nil {
				return d.Err("store already specified")
			}
			if err := a.unmarshalStore(d); err != nil {
				return err
			}
		case "in_flight_bytes":
			return d.Err("in_flight_bytes is not in this version: leave it out, max_body bounds each delivery")
		default:
			return unknownWord(d, "the global option webhook_gate", "store")
		}
	}
	return nil
}

func (a *App) unmarshalStore(d *caddyfile.Dispenser) error {
	if !d.NextArg() {
		return d.Err("store names no store: write `store bolt [<path>]`")
	}
	name := d.Val()
	if name == "postgres" {
		return d.Err("store postgres is not in this version: write `store bolt [<path>]`")
	}
	id := "webhook_gate.stores." + name
	if _, err := caddy.GetModule(id); err != nil {
		return d.Errf("unknown store %q: write `store bolt [<path>]`", name)
	}
	unmarshaler, err := caddyfile.UnmarshalModule(d, id)
	if err != nil {
		return err
	}
	store, ok := unmarshaler.(Store)
	if !ok {
		return d.Errf("store %s: module %T does not implement the gate's Store interface", name, unmarshaler)
	}
	a.StoreRaw = caddyconfig.JSONModuleObject(store, "backend", name, nil)
	return nil
}

// Interface guards
var _ caddyfile.Unmarshaler = (*App)(nil)
