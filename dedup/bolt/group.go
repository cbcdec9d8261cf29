package bolt

import (
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/einlass/einlass/dedup"
)

// group is what the writer runs as one transaction.
type group struct {
	ops     []*op
	results []outcome
	bytes   int // of answers, roughly
	writes  bool

	// For readers that see the transaction before it is durable. Written before the group becomes pending.
	tx   int64
	keys map[key]struct{} // records and guard entries written
	done chan struct{}    // closed once the commit has succeeded or failed
}

type outcome struct {
	result dedup.Result
	err    error
}

// take adds an op, unless its caller has given up.
func (g *group) take(o *op) {
	if !o.taken.CompareAndSwap(false, true) {
		return
	}
	g.ops = append(g.ops, o)
	switch t := o.transition.(type) {
	case dedup.Finish:
		g.bytes += len(t.Answer.Body)
	case dedup.Confirm:
		g.bytes += len(t.Answer.Body)
	}
}

func (g *group) touches(on touched) bool {
	for _, k := range [...]key{on.keys[0], on.keys[1], on.guard} {
		if _, hit := g.keys[k]; hit {
			return true
		}
	}
	return false
}

// steps runs every op against what the ones before it have left, and returns the counts as they will be. A damaged
// record, or a step the rules refuse, is its own op's error; a failed write is an error of all. noRoom, if there is
// any, is the error of every reservation.
func (g *group) steps(tx *bbolt.Tx, n counts, noRoom error) (counts, error) {
	clear(g.results)
	g.keys = make(map[key]struct{}, len(g.ops))
	g.writes = false
	b, err := openBuckets(tx)
	if err != nil {
		return n, err
	}
	for i, o := range g.ops {
		if _, isNew := o.transition.(dedup.Reserve); isNew && noRoom != nil {
			g.results[i].err = dedup.NotWritten(noRoom)
			continue
		}
		wrote, err := g.step(b, o, &g.results[i], &n)
		if err != nil {
			return n, err
		}
		g.writes = g.writes || wrote
	}
	if g.writes {
		err = b.meta.Put(metaCounts, appendCounts(n))
	}
	return n, err
}

func (g *group) step(b buckets, o *op, out *outcome, n *counts) (wrote bool, err error) {
	id := o.transition.Of()
	k, cur, found, on, err := b.find(id)
	if err != nil {
		out.err = dedup.NotWritten(err)
		return false, nil
	}
	next, write, res, err := dedup.Step(o.transition, cur, found)
	out.result = res
	if err != nil {
		out.err = err
		return false, nil //nolint:nilerr // it is this op's own, the group goes on
	}
	if !write {
		return false, nil
	}
	if err := b.save(k, cur, next, id); errors.Is(err, dedup.ErrCorrupt) {
		out.result, out.err = dedup.Result{}, dedup.NotWritten(err)
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("writing record %x: %w", k, err)
	}
	g.keys[k] = struct{}{}
	if id.Guard {
		g.keys[on.guard] = struct{}{}
	}
	if found {
		n[cur.State]--
	}
	n[next.State]++
	return true, nil
}
