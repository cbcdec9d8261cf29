package verifier

import (
	"cmp"
	"slices"
	"strings"
)

// presets is filled by the init function of each preset's file and only read
// afterwards.
var presets = map[string]*Preset{}

// register adds a preset under its name. A double name is a mistake of ours,
// found by the first test that runs.
func register(p *Preset) {
	if _, taken := presets[p.Name]; taken || p.Name == "" {
		panic("verifier: preset name " + p.Name + " is empty or taken")
	}
	p.MaxBody = cmp.Or(p.MaxBody, DefaultMaxBody)
	p.Compare = cmp.Or(p.Compare, "bytes")
	presets[p.Name] = p
}

// Presets returns all presets, sorted by name.
func Presets() []*Preset {
	all := make([]*Preset, 0, len(presets))
	for _, p := range presets {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *Preset) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// LookupPreset returns the preset of exactly this name.
func LookupPreset(name string) (*Preset, bool) {
	p, ok := presets[name]
	return p, ok
}

// NearestPreset returns the name of the preset that name is most likely a
// misspelling of, or "" where none is near.
func NearestPreset(name string) string {
	word := bare(name)
	// Longer words may hold more mistakes; a third of the letters wrong is
	// another word.
	best, bound := "", min(3, (len(word)+2)/3)
	if word == "" || len(word) > 64 {
		return ""
	}
	for _, p := range Presets() {
		for _, spelling := range []string{bare(p.Name), bare(p.Title)} {
			if d := EditDistance(word, spelling); d < bound || d == bound && best == "" {
				best, bound = p.Name, d
			}
		}
	}
	return best
}

// bare drops what people vary: letter case and separators.
func bare(name string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "", ".", "").Replace(strings.ToLower(name))
}

// EditDistance is the Levenshtein distance in bytes: how many insertions,
// deletions and substitutions lie between two words.
func EditDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
