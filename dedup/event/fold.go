package event

import (
	"bytes"
	"hash/maphash"
	"unicode"
	"unicode/utf8"
)

// nameSets holds the names of the objects that are open at a time, folded, so that two names which a parser
// may take for one are found. All names stand in one buffer, one after the other. Those of a small object, the
// common one, are compared one by one; a large one gets an index of hashes.
type nameSets struct {
	folded []byte
	ends   []int                 // where each name ends in folded
	starts []int                 // per open object: its first index in ends
	hashes []map[uint64]struct{} // per open object; nil while it is small
}

// linearNames is up to how many names comparing is faster than hashing.
const linearNames = 24

// hashSeed is of this process, so that nobody can choose names with equal hashes.
var hashSeed = maphash.MakeSeed()

// push opens an object.
func (s *nameSets) push() {
	s.starts = append(s.starts, len(s.ends))
	s.hashes = append(s.hashes, nil)
}

// pop closes the innermost object.
func (s *nameSets) pop() {
	last := len(s.starts) - 1
	first := s.starts[last]
	s.folded = s.folded[:s.begin(first)]
	s.ends = s.ends[:first]
	s.starts, s.hashes = s.starts[:last], s.hashes[:last]
}

// begin is where the name with index n begins.
func (s *nameSets) begin(n int) int {
	if n == 0 {
		return 0
	}
	return s.ends[n-1]
}

// name is the name with index n.
func (s *nameSets) name(n int) []byte { return s.folded[s.begin(n):s.ends[n]] }

// add takes a quoted name into the innermost object. It is false if the name is there already.
func (s *nameSets) add(quoted []byte) bool {
	s.folded = appendFolded(s.folded, quoted)
	s.ends = append(s.ends, len(s.folded))
	last := len(s.starts) - 1
	first, added := s.starts[last], len(s.ends)-1
	if added-first >= linearNames && s.isNewHash(last, first, added) {
		return true
	}
	for n := first; n < added; n++ {
		if bytes.Equal(s.name(n), s.name(added)) {
			return false
		}
	}
	return true
}

// isNewHash takes the hash of the added name into the object's index. It is false if the hash is there, which
// is not yet proof that the name is.
func (s *nameSets) isNewHash(object, first, added int) bool {
	set := s.hashes[object]
	if set == nil {
		set = make(map[uint64]struct{}, 4*linearNames)
		for n := first; n < added; n++ {
			set[maphash.Bytes(hashSeed, s.name(n))] = struct{}{}
		}
		s.hashes[object] = set
	}
	known := len(set)
	set[maphash.Bytes(hashSeed, s.name(added))] = struct{}{}
	return len(set) > known
}

// appendFolded appends the name with every letter replaced by the first of those that differ by case only:
// the folding of encoding/json, and of strings.EqualFold.
func appendFolded(dst, quoted []byte) []byte {
	name := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		name = []byte(unquote(quoted))
	}
	for i := 0; i < len(name); {
		c := name[i]
		if c < utf8.RuneSelf {
			if 'a' <= c && c <= 'z' {
				c -= 'a' - 'A'
			}
			dst = append(dst, c)
			i++
			continue
		}
		r, size := utf8.DecodeRune(name[i:])
		dst = utf8.AppendRune(dst, foldRune(r))
		i += size
	}
	return dst
}

// foldRune gives the smallest rune of the orbit that r is in.
func foldRune(r rune) rune {
	for {
		following := unicode.SimpleFold(r)
		if following <= r {
			return following
		}
		r = following
	}
}
