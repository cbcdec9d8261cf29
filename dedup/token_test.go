package dedup

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// countingSeed is 0, 1, 2, ... 31: a seed that another program can be given, too.
func countingSeed() (s Seed) {
	for i := range s {
		s[i] = byte(i)
	}
	return s
}

// A store's receipts hold the hashes of tokens that are made anew when the app is asked: what is made and how it is
// hashed must never change. The expected values were computed by another program.
func TestTokensAndTheirHashesStayTheSame(t *testing.T) {
	t.Parallel()
	for attempt, want := range map[uint64]struct{ token, hash string }{
		1:              {"0000000000000001c1473a5a706905a609e2af939e2aabd7", "61c3835745e1565fde1f3b30bb6997df"},
		1772366400000:  {"0000019ca9450a00d1da53567c24b99c9b84424a4910b7a6", "93c91a3c0d254d149a4836dbaf91299c"},
		math.MaxUint64: {"ffffffffffffffff2655e7d20a9a43b374f3abbd8ee5cfbf", "3587bbc9308b2dd2628b1b9580766f3c"},
	} {
		token := countingSeed().Token(Key{"shop", "evt_1"}, attempt)
		hash := HashToken(token)
		if token != want.token || hex.EncodeToString(hash[:]) != want.hash {
			t.Errorf("attempt %d: got %s, %x; want %s, %s", attempt, token, hash, want.token, want.hash)
		}
	}
}

// An app that fences compares tokens as texts, or as bytes of their hex digits.
func TestTokensOrderAsTheirAttemptsDo(t *testing.T) {
	t.Parallel()
	attempts := []uint64{1, 2, 9, 10, 15, 16, 255, 256, 999_999_999_999, 1_000_000_000_000, 1772366400000, 1772366400001,
		1 << 62, 1 << 63, math.MaxUint64 - 1, math.MaxUint64}
	for _, seed := range []Seed{{}, {1}, countingSeed()} {
		var tokens []string
		for _, n := range attempts {
			token := seed.Token(Key{"shop", "e"}, n)
			if b, err := hex.DecodeString(token); err != nil || len(b) != 24 || token != strings.ToLower(token) {
				t.Fatalf("%q is not 48 lower-case hex digits: %v", token, err)
			}
			tokens = append(tokens, token)
		}
		if !slices.IsSorted(tokens) {
			t.Fatalf("not in the attempts' order: %q", tokens)
		}
	}
	// Also of attempts that two seeds were used for: a store restored from a backup keeps its seed, a new one does not.
	if (Seed{1}).Token(Key{"shop", "e"}, 7) >= (Seed{2}).Token(Key{"shop", "e"}, 8) ||
		(Seed{2}).Token(Key{"shop", "e"}, 7) >= (Seed{1}).Token(Key{"shop", "e"}, 8) {
		t.Fatal("the seed decides the order")
	}
}

func TestNoTwoTokensShareTheirSecretHalf(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, seed := range []Seed{{}, {1}, {31: 1}, countingSeed()} {
		for _, key := range []Key{{"shop", "e"}, {"shop", "f"}, {"sho", "pe"}, {"shope", ""}, {"other", "e"}, {"e", "shop"}, {"SHOP", "e"}} {
			for _, attempt := range []uint64{1, 2, 1 << 8, 1 << 56} {
				of := fmt.Sprint(seed[0], seed[31], key, attempt)
				token := seed.Token(key, attempt)
				if token != seed.Token(key, attempt) {
					t.Fatal("not the same twice:", of)
				}
				if other, known := seen[token[16:]]; known {
					t.Fatalf("%s and %s share %s", of, other, token[16:])
				}
				seen[token[16:]] = of
			}
		}
	}
}

func TestATokenIsKnownOnlyToItsOwnAttempt(t *testing.T) {
	t.Parallel()
	seed, key := countingSeed(), Key{"shop", "e"}
	r := Receipt{Key: key, State: StateOpen, Attempt: 3, Closed: 1}
	for n := range uint64(3) {
		r.Tokens = append(r.Tokens, AttemptToken{n + 1, HashToken(seed.Token(key, n+1))})
	}
	for n := uint64(1); n <= 3; n++ { // a closed one's, too: the app is told that it is closed
		if of, found := r.attemptOf(HashToken(seed.Token(key, n)), 0); !found || of != n {
			t.Errorf("attempt %d is taken for %d, %t", n, of, found)
		}
		if !r.hasToken(n, seed.Token(key, n)) || r.hasToken(n+1, seed.Token(key, n)) {
			t.Errorf("attempt %d has another one's token, or not its own", n)
		}
	}
	for name, token := range map[string]string{
		"none":               "",
		"of a later attempt": seed.Token(key, 4),
		"of another event":   seed.Token(Key{"shop", "f"}, 2),
		"of another source":  seed.Token(Key{"shop2", "e"}, 2),
		"of another seed":    Seed{}.Token(key, 2),
		"in capitals":        strings.ToUpper(seed.Token(key, 2)),
		"with a space":       seed.Token(key, 2) + " ",
		"its secret half":    seed.Token(key, 2)[16:],
		"its number only":    seed.Token(key, 2)[:16],
		"its stored form":    fmt.Sprintf("%x", r.Tokens[1].Hash),
	} {
		if of, found := r.attemptOf(HashToken(token), 0); found {
			t.Errorf("a token %s is taken for that of attempt %d", name, of)
		}
	}
}

func TestNoVerbPrintsASeed(t *testing.T) {
	t.Parallel()
	seed := countingSeed()
	reserve := Reserve{Identity: Identity{Key: Key{"shop", "e"}}, At: noon, Lease: time.Minute, Seed: seed}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%o"} {
		for _, value := range []any{seed, &seed, []Seed{seed}, reserve, &reserve, Transition(reserve), []Transition{reserve}} {
			printed := strings.ToLower(fmt.Sprintf(verb, value))
			for _, secret := range []string{"16 17 18 19", "0x10, 0x11, 0x12", "10111213", "10 11 12 13", "\x10\x11\x12\x13", `\x10\x11\x12\x13`} {
				if strings.Contains(printed, secret) {
					t.Errorf("%s prints the seed of a %T: %s", verb, value, printed)
				}
			}
		}
	}
	if printed := fmt.Sprint(seed); printed != "(seed)" {
		t.Error(printed)
	}
}

// An attempt's token is a secret of gate and app; a log line about the attempt must not hold it.
func TestNoVerbPrintsAnAttemptsToken(t *testing.T) {
	t.Parallel()
	g := NewGate(NewMemory(), GateOptions{Now: func() time.Time { return noon }})
	defer g.Close()
	v, err := g.Reserve(t.Context(), Identity{Key: Key{"shop", "e"}, Digest: Digest{1}}, Policy{Lease: time.Minute})
	if err != nil || v.Kind != Forward {
		t.Fatal(v.Kind, err)
	}
	secret := v.Attempt.Token[16:]
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		for _, value := range []any{v.Attempt, v, &v, v.Receipt} {
			if printed := fmt.Sprintf(verb, value); strings.Contains(printed, secret) {
				t.Errorf("%s prints the token of a %T: %s", verb, value, printed)
			}
		}
	}
	v.Attempt.Leave()
}
