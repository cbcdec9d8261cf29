package dedup

// NoticeKind is something that an operator should hear of.
type NoticeKind uint8

// The notices.
const (
	NoticeReceiptDiffers NoticeKind = iota // an attempt confirmed something else than what is stored: two effects
	NoticeAttemptClosed                    // an attempt confirmed that was closed for good
	NoticeResolved                         // the app has answered the outcome question, and the event has moved
	NoticeHeld                             // an event is set aside for a person
	NoticeUnanswered                       // the outcome question was not answered; Err tells why
	NoticeScanFailed                       // the store's undecided events cannot be read; Err tells why
)

// Notice is an event's turn that no request is there to be told of. It holds no token.
type Notice struct {
	Kind    NoticeKind
	Key     Key     // zero for NoticeScanFailed
	Receipt Receipt // as it stands
	Attempt uint64  // number of the attempt that spoke; 0 where it is not known
	Err     error
}

func (g *Gate) notify(n Notice) {
	if g.options.Notify != nil {
		g.options.Notify(n)
	}
}
