// Package model checks the commit protocol exhaustively. It holds no code of the product: only tests.
//
// A small world, one event, is explored in all its interleavings. The rules in it are the real ones: every move of the
// receipt is dedup.Step on a real dedup.Receipt. Modelled are the gate around them (who may reserve, when it asks, what
// it answers: dedup.Gate and what the handler makes of it), an app of a chosen level, a sender that repeats, and a
// network that delays, loses and doubles. Leases end at any time; gate and app are killed at any time.
//
//   - Variants that hold: in every state, every invariant of I1-I12 that the deployment is promised.
//   - Limits: deployments in which no gate can keep a promise. Each must break the invariant that is named.
//   - Faults: a rule of the gate is left out. Each must be caught, with the shortest way there; a checker that misses
//     one is no good.
//   - The table: every move is made from every state, or it is said why it cannot be.
//
// What is left out, and why that loses nothing:
//
//   - Bytes are digests: a forward carries the digest of the delivery that made it (I2 is a matter of one buffer).
//   - A sender that is answered without the attempt's end (answer_within), or has gone, changes nothing. The model
//     answers every sender, which asks more of the answers.
//   - A kill and the start after it are one step: everything else can wait as long.
//   - A step of the store is one: a kill before it, and one after it before its caller goes on, are other ways.
//   - A delivery on its way to the gate is one that was not sent yet.
//   - Time is no number. A lease ends when it pleases; the clock only makes attempt numbers.
//
// More of everything, with more memory: go test ./dedup/model -run Holds -v -model.budget 3,2,2,2,1
package model
