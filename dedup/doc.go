// Package dedup knows which webhook events were seen and what became of them. It holds the receipts, the commit
// protocol between a gate and the app behind it, and the interface of the stores beneath. It knows neither
// Caddy nor HTTP: a delivery comes in as an [Identity] and leaves as a [Verdict].
//
// # States
//
// A receipt is the durable record of one event, in one of these states:
//
//	            T1 first delivery                T3 committed
//	 (absent) ─────────────────────▶ reserved ─────────────────▶ committed   final, answer stored
//	                                 │  ▲  │ │
//	              T4 aborted, nothing│  │  │ │ T6 rejected
//	              sent, or the app   │  │  │ └─────────────────▶ rejected    final, answer stored
//	              knows nothing of it▼  │  │
//	              T5 and refuses it open┘  │ T8 lease over, policy "hold"
//	              for good   T2 next       └──────────────────▶ held         a person decides (T9)
//	                         delivery
//
//	T7  reserved ─▶ reserved   a further attempt after the lease's end, flagged in doubt (policy "redeliver")
//	T3, T6 lead to their final state from open and held too: the confirmation of any attempt that is not
//	closed counts, however late it comes and however many attempts are newer.
//
//	[Reserve] T1 T2 T7 T8    [Finish] T3 T4 T6, of an attempt by its number   [Confirm] T3 T4 T6, by its token
//	[Absent] T4 T5           [Extend] none: a new lease                       [Hold] T8
//
// Nothing else moves a state. In particular the end of a lease, a time-out, a restart and an answer that was
// not understood move none. "In doubt" is not a state: it is a receipt that is reserved while its attempt is not
// running in this process. T9, T10 (inbox) and T11 (retention) are numbered here because the records have room for
// them; no transition of this package makes them yet.
//
// # Who asks
//
// With policy [Ask] the app is asked what became of an event that is in doubt ([Asker]): when a delivery of it comes
// ([Gate.Ask]), before a failure of the app is believed ([Attempt.Ask]), and by the gate itself ([Gate.Use]) at once
// after a restart, at the end of the lease, then with growing gaps for as long as its newest attempt may confirm; also
// while the event is open, for an app that knows nothing of an attempt may still commit it. What the app says is
// stored by the same transitions; no answer, or nonsense, moves nothing.
//
// The rules are pure functions, one for each [Transition]; [Step] is the only way to them. A store loads a
// receipt, calls Step and saves what it returns, in one atomic and durable step of its own.
//
// # What is on disk when
//
//	before the first byte of a forward    reserved, with the attempt's number, the hash of its token, its lease
//	before an answer to the sender        committed or rejected, with the answer
//	after "unknown and fenced"            open, with the number up to which attempts are closed
//	after "pending"                       reserved, with a new lease
//	after "connection refused", aborted   open; the attempt's token hash stays, for it may still confirm
//	after a cut-off or a time-out         reserved, untouched ([Attempt.Leave])
//	after the lease, policy "hold"        held
//	after a crash at any point            whatever the last acknowledged step wrote, or one step more
//
// A final receipt never changes: of two different outcomes the first stands.
//
// # Clocks
//
// Leases are judged by the clock of the [Gate]. No safety property hangs on it: a lease that ends too early costs
// at most a second attempt that is flagged in doubt, one that ends too late costs the sender some retries.
// Attempt numbers grow across a clock that is turned back, and across a store that is restored from a backup.
package dedup
