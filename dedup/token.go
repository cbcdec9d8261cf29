package dedup

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
)

// Seed is a store's own secret, 256 random bits, the same for as long as the store lives. Attempts' tokens are made
// from it. So the gate can name a token again after a restart, when it asks the app what became of that attempt,
// although a receipt holds only the token's hash.
type Seed [32]byte

// Format hides the seed from every verb. (Inside an unexported field fmt calls no method: do not print a store.)
func (Seed) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "(seed)") }

// MarshalText hides the seed from encoders and loggers.
func (Seed) MarshalText() ([]byte, error) { return []byte("(seed)"), nil }

// Token is the token of one attempt: 16 hex digits of the attempt's number, then 32 of 128 bits that nobody can
// guess who has not the seed. Of two attempts of an event, the later one's token is the greater text, also across a
// restored store, for so are the numbers: an app that refuses an attempt and all before it has only to compare.
func (s Seed) Token(key Key, attempt uint64) string {
	event := key.Hash()
	mac := hmac.New(sha256.New, s[:])
	mac.Write(binary.BigEndian.AppendUint64(event[:], attempt))
	return fmt.Sprintf("%016x", attempt) + hex.EncodeToString(mac.Sum(nil)[:16])
}

// attemptOf is the attempt of the event whose token this is, or 0 if the seed has not made it.
func (s Seed) attemptOf(key Key, token string) uint64 {
	if len(token) != 48 {
		return 0
	}
	attempt, err := strconv.ParseUint(token[:16], 16, 64)
	if err != nil || subtle.ConstantTimeCompare([]byte(s.Token(key, attempt)), []byte(token)) != 1 {
		return 0
	}
	return attempt
}

// HashToken is the stored form of an attempt's token: the first 16 bytes of the SHA-256 of its text.
func HashToken(token string) [16]byte {
	sum := sha256.Sum256([]byte(token))
	return [16]byte(sum[:16])
}

// attemptOf finds the attempt with this token's hash, in constant time, closed ones included. made is the attempt that
// the store's seed says the token is of, or 0: a receipt remembers the hashes of the newest attempts only.
func (r Receipt) attemptOf(hash [16]byte, made uint64) (attempt uint64, found bool) {
	if made != 0 && made <= r.Attempt {
		attempt, found = made, true
	}
	for _, t := range r.Tokens {
		if subtle.ConstantTimeCompare(t.Hash[:], hash[:]) == 1 {
			attempt, found = t.Attempt, true
		}
	}
	return attempt, found
}

// hasToken tells whether the token is that of the attempt, as the receipt remembers it.
func (r Receipt) hasToken(attempt uint64, token string) bool {
	of, found := r.attemptOf(HashToken(token), 0)
	return found && of == attempt
}
