package model

import (
	"fmt"
	"hash/maphash"

	"github.com/einlass/einlass/dedup"
)

// model explores one variant.
type model struct {
	*variant
	taken map[taken]moved

	// Of the step under way.
	from    *state
	failing uint8 // how the store is to fail
	failed  bool  // and that it was used
	broken  invariant
	found   []successor
	words   bool // keep the steps' texts
}

// successor is a state that one step leads to.
type successor struct {
	state  state
	broken invariant
	text   string
}

func newModel(v variant) *model {
	if v.step == nil {
		v.step = dedup.Step
	}
	v.gates = max(v.gates, 1)
	return &model{variant: &v, taken: map[taken]moved{}}
}

// emit takes a state that the step under way leads to.
func (m *model) emit(n *state, text string, args ...any) {
	failed := m.failed
	m.failed = false
	if m.failing != storeWorks {
		if !failed {
			m.broken = 0
			return // the same without the store's failing
		}
		n.failures--
	}
	s := successor{state: *n}
	m.checkState(m.from, n)
	s.broken, m.broken = m.broken, 0
	m.canonical(&s.state)
	if m.words {
		s.text = fmt.Sprintf(text, args...) + [...]string{"", " (the store fails)", " (the store fails, and has written)"}[m.failing]
	}
	m.found = append(m.found, s)
}

func (m *model) successors(s *state) []successor {
	m.from, m.found = s, m.found[:0]
	for m.failing = storeWorks; m.failing <= storeHides; m.failing++ {
		m.steps(s)
		if s.failures == 0 {
			break
		}
	}
	return m.found
}

// graph is what was explored, in the order of its depth.
type graph struct {
	states []packed
	parent []uint32
	first  []uint32 // where a state's steps begin in next; one more than states
	next   []uint32
	table  []uint32 // hash table of the states' places, plus one
	seed   maphash.Seed
	depth  int
}

// place is the state's, which is added if it is new.
func (g *graph) place(s *state, parent uint32) (at uint32, fresh bool) {
	if 2*len(g.states) >= len(g.table) {
		g.grow()
	}
	mask, key := uint64(len(g.table)-1), s.pack()
	for h := maphash.Comparable(g.seed, key) & mask; ; h = (h + 1) & mask {
		switch at := g.table[h]; {
		case at == 0:
			g.states, g.parent = append(g.states, key), append(g.parent, parent)
			g.table[h] = uint32(len(g.states))
			return uint32(len(g.states) - 1), true
		case g.states[at-1] == key:
			return at - 1, false
		}
	}
}

func (g *graph) grow() {
	g.table = make([]uint32, max(1<<12, 2*len(g.table)))
	mask := uint64(len(g.table) - 1)
	for i := range g.states {
		h := maphash.Comparable(g.seed, g.states[i]) & mask
		for g.table[h] != 0 {
			h = (h + 1) & mask
		}
		g.table[h] = uint32(i + 1)
	}
}

// outcome of an exploration.
type outcome struct {
	states, steps, depth int
	broken               invariant
	stuck                int // I10, I11: states from which what is promised cannot be reached
	trace                []string
	taken                map[taken]moved
}

// explore visits every state, nearest first, until one breaks an invariant; then it looks for what cannot be reached.
func explore(v variant) outcome {
	m := newModel(v)
	g := &graph{seed: maphash.MakeSeed()}
	start := m.initial()
	g.place(&start, 0)
	last := uint32(1) // where the next depth begins
	for i := uint32(0); int(i) < len(g.states); i++ {
		if i == last {
			g.depth++
			last = uint32(len(g.states))
		}
		s := g.states[i].unpack()
		g.first = append(g.first, uint32(len(g.next)))
		for _, n := range m.successors(&s) {
			if n.broken != 0 {
				trace := append(g.trace(m, i), m.text(&s, &n))
				return outcome{len(g.states), len(g.next), len(trace), n.broken, 1, trace, m.taken}
			}
			at, _ := g.place(&n.state, i)
			g.next = append(g.next, at)
		}
	}
	g.first = append(g.first, uint32(len(g.next)))
	g.table = nil
	out := outcome{states: len(g.states), steps: len(g.next), depth: g.depth, taken: m.taken}
	g.checkReach(m, &out)
	return out
}

// checkReach is I10 and I11: from every state that needs it, a state that is wanted can be reached.
func (g *graph) checkReach(m *model, out *outcome) {
	back := g.backwards()
	for _, promise := range []struct {
		invariant invariant
		wanted    func(*state) bool
		needs     func(*state) bool
	}{
		{learns, func(s *state) bool { return s.store.state == committed }, m.mustLearn},
		{finishes, func(s *state) bool { return s.store.final() }, m.mustFinish},
	} {
		if !m.checks(promise.invariant) {
			continue
		}
		can := back.reaching(g, promise.wanted)
		for i := range g.states {
			if can[i] {
				continue
			}
			if s := g.states[i].unpack(); promise.needs(&s) {
				if out.stuck == 0 {
					out.broken, out.trace = promise.invariant, g.trace(m, uint32(i))
				}
				out.stuck++
			}
		}
		if out.stuck > 0 {
			return
		}
	}
}

// reversed holds the steps by the state they lead to.
type reversed struct{ first, from []uint32 }

func (g *graph) backwards() reversed {
	r := reversed{make([]uint32, len(g.states)+2), make([]uint32, len(g.next))}
	for _, to := range g.next {
		r.first[to+2]++
	}
	for i := 2; i < len(r.first); i++ {
		r.first[i] += r.first[i-1]
	}
	for i := range g.states {
		for _, to := range g.next[g.first[i]:g.first[i+1]] {
			r.from[r.first[to+1]] = uint32(i)
			r.first[to+1]++
		}
	}
	return r
}

func (r reversed) reaching(g *graph, wanted func(*state) bool) []bool {
	can := make([]bool, len(g.states))
	var todo []uint32
	for i := range g.states {
		if s := g.states[i].unpack(); wanted(&s) {
			can[i] = true
			todo = append(todo, uint32(i))
		}
	}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, from := range r.from[r.first[at]:r.first[at+1]] {
			if !can[from] {
				can[from] = true
				todo = append(todo, from)
			}
		}
	}
	return can
}

// trace is the shortest way to a state, in words.
func (g *graph) trace(m *model, to uint32) (steps []string) {
	for to != 0 {
		from, at := g.states[g.parent[to]].unpack(), g.states[to].unpack()
		steps = append(steps, m.text(&from, &successor{state: at}))
		to = g.parent[to]
	}
	for i, j := 0, len(steps)-1; i < j; i, j = i+1, j-1 {
		steps[i], steps[j] = steps[j], steps[i]
	}
	return steps
}

// text is the step from one state to another, in words.
func (m *model) text(from *state, to *successor) string {
	m.words = true
	defer func() { m.words = false }()
	want := *to // the slice it is in is used again
	for _, n := range m.successors(from) {
		if n.state == want.state && n.broken == want.broken {
			return n.text
		}
	}
	return "?"
}
