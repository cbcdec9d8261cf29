// Package counter is the app of the demonstration: it receives webhooks that add to a counter and keeps it in a
// SQLite file. It does what an app behind the gate should do to have an exactly-once effect: the effect and one
// row for the event's id are committed in one transaction, and an event that is known is answered from its
// row. Faults can be armed per event, to see what becomes of a delivery whose app fails at the worst moment.
//
// Everything of it is real: the file, the transactions, the HTTP server, the connection that is cut.
package counter
