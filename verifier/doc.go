// Package verifier answers one question about a webhook delivery: did the
// configured sender sign exactly these bytes, now?
//
// It knows nothing of Caddy, of storage or of HTTP servers, keeps no state
// between deliveries and uses the standard library only. A delivery is judged
// in two steps, so that a forged or stale one costs no body read:
//
//	check, err := v.Begin(request)     // headers: present, single, well-formed, in the window
//	io.Copy(check, body)               // one MAC per active secret is fed as bytes arrive
//	result, err := check.Finish(bytes) // constant-time comparison, every secret and signature tried
//
// Everything fails closed: what is missing, repeated, empty, malformed, too old
// or from the future is refused, and an error never holds a secret, a
// signature or a byte of the body.
//
// # Families and presets
//
// A [Family] is a kind of scheme declared as data; [HMAC] covers keyed digests.
// A [Preset] is one real sender: one or more families and the [Facts] known
// about it.
//
// # Adding a preset
//
//  1. Write NAME.go with one register call (github.go is the shortest model,
//     shopify.go has two header families, slack.go has a handshake). The name
//     is that of the vector file. Say in Sources where each fact is from and
//     leave out what is not known.
//  2. Put the vector file, made with the sender's own library, into
//     testdata/NAME.json. TestVectors finds it by itself, and the conformance
//     suite of package verifiertest runs on every preset that is registered.
//
// A scheme that no family can declare needs a new family: a type with
// New(Options), whose verifiers also implement [Signer] so that `send` and the
// conformance suite work, and [HeaderReader] where it is to be one of several
// variants of a preset.
package verifier
