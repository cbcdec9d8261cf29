package verifier

import (
	"crypto/hmac"
	"hash"
	"sync"
	"time"
)

// hmacKey is one secret, ready for use.
type hmacKey struct {
	until time.Time
	// pool holds keyed MACs at rest. Reset restores the state after the key
	// block, so a used one is cheaper than a new one. The key itself lives only
	// inside the pool's closure, where no print of a verifier reaches it.
	pool *sync.Pool
}

func newHMACKey(newHash func() hash.Hash, key []byte, until time.Time) hmacKey {
	return hmacKey{until: until, pool: &sync.Pool{New: func() any { return hmac.New(newHash, key) }}}
}

func (k hmacKey) active(now time.Time) bool {
	return k.until.IsZero() || k.until.After(now)
}

func (k hmacKey) take() hash.Hash { return k.pool.Get().(hash.Hash) }

func (k hmacKey) give(mac hash.Hash) {
	mac.Reset()
	k.pool.Put(mac)
}
