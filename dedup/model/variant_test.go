package model

import "github.com/einlass/einlass/dedup"

// budget bounds what may go wrong in one run.
type budget struct {
	deliveries uint8 // of the event, by its sender
	odd        uint8 // deliveries with its id and other bytes
	gateKills  uint8
	appKills   uint8
	losses     uint8 // messages
	doubles    uint8 // forwards that reach the app twice
	restores   uint8 // of the store, from a backup made at any earlier time
	failures   uint8 // of the store's writes
}

// usual is the budget of the protocol notes.
var usual = budget{deliveries: 2, gateKills: 1, appKills: 1, losses: 1, doubles: 1}

// rows is what the app keeps in the transaction of its effect.
type rows uint8

const (
	noRow    rows = iota // L0, L1: nothing
	tokenRow             // one row for each attempt's token
	eventRow             // L2, L3: one row for each event, with its receipt
)

// app is how the app behind the gate behaves. It answers the outcome question iff the policy asks.
type app struct {
	rows         rows
	callback     bool // it confirms by callback, and its 2xx means only "accepted"
	verdicts     bool // with callback: its HTTP answer brings its verdict, too
	fenced       bool // it answers the question with a durable refusal (410), and keeps to it
	unsure       bool // now it answers with a durable refusal, now without (404)
	fencedAborts bool // and so it does when it says `aborted`
	rejects      bool // it may refuse the event for good
	early        bool // it may answer `pending` and go on
	plain        bool // it fails with a 5xx and no verdict
	careless     bool // it may say `aborted` without having looked at its row
	loses        bool // its database loses the last commit when it is killed
}

// switches turn rules of the modelled gate off: the seeded faults.
type switches struct {
	forwardFirst    bool // forwards before the reservation is durable
	answerFirst     bool // answers the sender before the receipt is durable
	ackFirst        bool // answers the callback before the receipt is durable
	staleReserve    bool // looks up and reserves in two transactions
	unbound         bool // takes other bytes for the event
	timeoutFrees    bool // takes a time-out for `aborted`
	deafOnceOpen    bool // asks no more once the event is open
	noFlights       bool // does not know what runs here
	restartForgets  bool // throws reservations away when it starts
	restartSilent   bool // does not look for undecided events when it starts
	acceptedCommits bool // takes "accepted" for "committed"
	openStays       bool // does not forward an open event again
	eagerReplay     bool // answers a repeat while the attempt runs as if it had succeeded
}

// stepFunc is dedup.Step, or a fault around it.
type stepFunc func(dedup.Transition, dedup.Receipt, bool) (dedup.Receipt, bool, dedup.Result, error)

// variant is one world to explore.
type variant struct {
	name    string
	app     app
	policy  dedup.InDoubtPolicy
	budget  budget
	gates   int  // processes over one store; default 1
	forGood bool // a killed process does not come back, unless it was the last

	strict bool // I10 also where a backup knows of nothing that could be asked

	off  switches
	step stepFunc // default: dedup.Step

	without []invariant // not promised
	want    invariant   // what must break; 0: nothing
}

func (v *variant) asks() bool { return v.policy == dedup.Ask }

func (v *variant) checks(i invariant) bool {
	for _, w := range v.without {
		if w == i {
			return false
		}
	}
	return true
}
