// Package event reads what a delivery says: which event it carries, of what type, and whether its content is
// what was agreed. It knows headers and bytes only; no HTTP server, no store, no Caddy.
//
// A [Document] is one delivery's headers and body. A [Selector] finds a value in it, a [Comparison] reduces
// it to a fingerprint that tells a repeat from a conflict, a [Contract] holds it against a JSON Schema.
//
// Everything here is strict on purpose. The gate and the app behind it read the same bytes with different
// parsers; wherever two parsers may disagree about which event a body carries (a repeated name, two names that
// differ by letter case only, a lone surrogate, bytes that are not UTF-8, a rounded number) the body is
// refused instead of being read in the gate's own way.
package event
