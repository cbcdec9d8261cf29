package dedup

import (
	"fmt"

	"github.com/einlass/einlass/dedup/failpoint"
)

// points are the failpoints around a transition's step.
func points(t Transition) (before, after string) {
	switch t := t.(type) {
	case Reserve:
		return failpoint.ReserveBefore, failpoint.ReserveAfter
	case Finish:
		switch t.Outcome {
		case Commit:
			return failpoint.CommitBefore, failpoint.CommitAfter
		case Reject:
			return failpoint.RejectBefore, failpoint.RejectAfter
		}
		return failpoint.AbortBefore, failpoint.AbortAfter
	case Confirm:
		return failpoint.ConfirmBefore, failpoint.ConfirmAfter
	case Absent:
		return failpoint.AbsentBefore, failpoint.AbsentAfter
	case Extend:
		return failpoint.ExtendBefore, failpoint.ExtendAfter
	case Hold:
		return failpoint.HoldBefore, failpoint.HoldAfter
	}
	panic(fmt.Sprintf("no failpoints for %T", t))
}
