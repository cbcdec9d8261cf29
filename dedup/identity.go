package dedup

import (
	"crypto/sha256"
	"encoding/binary"
)

// Key names an event: the source as configured, and the sender's id within it.
type Key struct{ Source, Event string }

// Hash is the key's fixed-size form, the one stores index by: the first 16 bytes of
// SHA-256(length of source, 8 bytes big endian | source | event). The length keeps ("a", "bc") and ("ab", "c")
// apart. It is on disk and never changes.
func (k Key) Hash() [16]byte { return hashPair(k.Source, k.Event) }

// Digest is a SHA-256.
type Digest [32]byte

// GuardHash is what a replay guard is indexed by: [Key.Hash] with the digest's bytes in the event's place.
func GuardHash(source string, digest Digest) [16]byte {
	return hashPair(source, string(digest[:]))
}

func hashPair(source, rest string) [16]byte {
	buf := make([]byte, 0, 256)
	buf = binary.BigEndian.AppendUint64(buf, uint64(len(source)))
	buf = append(buf, source...)
	buf = append(buf, rest...)
	sum := sha256.Sum256(buf)
	return [16]byte(sum[:16])
}

// Identity is what a delivery says it is.
type Identity struct {
	Key
	Type        string
	Digest      Digest // SHA-256 of the raw body
	Fingerprint Digest // what equality is judged by where it differs from the bytes; = Digest (or zero) for bytes
	ByID        bool   // equal ids are the same event whatever the bytes
	Guard       bool   // replay guard: an unknown id with a known (source, Digest) is that event
}

// normal fills in the fingerprint of an identity that is compared by its bytes.
func (id Identity) normal() Identity {
	if id.Fingerprint == (Digest{}) {
		id.Fingerprint = id.Digest
	}
	return id
}

// sameContent tells whether two deliveries of one event carry the same thing.
func (id Identity) sameContent(digest, fingerprint Digest) bool {
	return id.ByID || id.Digest == digest || id.Fingerprint == fingerprint
}
