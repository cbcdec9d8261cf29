// Package einlass lets each webhook in once.
//
// It is a Caddy HTTP handler, `webhook_gate`, that stands in front of an app which receives webhooks. It
// verifies the sender's signature over the raw body, enforces size and time limits, records a receipt of every
// event durably, forwards verified first deliveries only, answers repeats from the stored receipt, and refuses
// the same event id with other content.
//
// Importing this package registers the modules with Caddy; it is what xcaddy imports:
//
//	xcaddy build --with github.com/einlass/einlass
package einlass

import (
	// Registers the handler, the app, the store, the verifiers and the commands.
	_ "github.com/einlass/einlass/caddy"
)
