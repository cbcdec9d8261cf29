package bolt

import (
	"github.com/einlass/einlass/dedup"
)

// touched is what a lookup depends on: a write of any of these may change its result.
type touched struct {
	keys  [2]key // the event named, and the one the guard leads to
	guard key    // zero without a guard
}

// find loads the receipt of an event and the key it is, or would be, kept under. The receipt shares no memory with
// the transaction.
func (b buckets) find(id dedup.Identity) (k key, r dedup.Receipt, found bool, on touched, err error) {
	k = id.Hash()
	on.keys = [2]key{k, k}
	if id.Guard {
		on.guard = dedup.GuardHash(id.Source, id.Digest)
	}
	r, found, err = b.load(k)
	if found || err != nil || !id.Guard {
		return k, r, found, on, err
	}
	first, known, err := b.guarded(on.guard)
	if !known || err != nil {
		return k, dedup.Receipt{}, false, on, err
	}
	on.keys[1] = first
	r, found, err = b.load(first)
	if !found {
		return k, dedup.Receipt{}, false, on, err // forgotten by retention: the id is a new event
	}
	return first, r, found, on, err
}

func (b buckets) load(k key) (dedup.Receipt, bool, error) {
	sealed := b.live.Get(k[:])
	if sealed == nil {
		sealed = b.receipts.Get(k[:])
	}
	if sealed == nil {
		return dedup.Receipt{}, false, nil
	}
	r, err := decode(k, sealed)
	return r, err == nil, err
}

func (b buckets) guarded(guard key) (k key, known bool, err error) {
	sealed := b.digests.Get(guard[:])
	if sealed == nil {
		return k, false, nil
	}
	value, err := unseal(guard, sealed)
	if err != nil {
		return k, false, err
	}
	if len(value) != keySize {
		return k, false, dedup.ErrCorrupt
	}
	return key(value), true, nil
}

// save writes next in the place of cur, and whatever goes with it. Writing the same twice changes nothing.
func (b buckets) save(k key, cur, next dedup.Receipt, id dedup.Identity) error {
	// First what can go wrong with one record: nothing of the others' group may be written before.
	guard, write, err := b.guardToWrite(id)
	if err != nil {
		return err
	}
	sealed := seal(k, dedup.AppendReceipt(nil, next))
	to, from := b.live, b.receipts
	if next.State.Final() {
		to, from = b.receipts, b.live
	}
	if cur.State != dedup.StateAbsent && cur.State.Final() != next.State.Final() {
		if err := from.Delete(k[:]); err != nil {
			return err
		}
	}
	if err := to.Put(k[:], sealed); err != nil {
		return err
	}
	if !write {
		return nil
	}
	return b.digests.Put(guard[:], seal(guard, append(make([]byte, 0, keySize+4), k[:]...)))
}

// guardToWrite tells whether the content's place in the guard index is this event's to take: it is free, or leads to
// an event that is not there any more.
func (b buckets) guardToWrite(id dedup.Identity) (guard key, write bool, err error) {
	if !id.Guard {
		return guard, false, nil
	}
	guard = dedup.GuardHash(id.Source, id.Digest)
	first, known, err := b.guarded(guard)
	if err != nil || !known {
		return guard, err == nil, err
	}
	_, found, err := b.load(first)
	return guard, err == nil && !found, err
}
