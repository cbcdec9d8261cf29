package bolt

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/einlass/einlass/dedup"
	"github.com/einlass/einlass/dedup/deduptest"
)

func TestTheSeedLivesAsLongAsTheFile(t *testing.T) {
	t.Parallel()
	s := opened(t)
	seed := s.Seed()
	res, err := s.Apply(t.Context(), dedup.Reserve{
		Identity: deduptest.Event("e", "x"), At: deduptest.Start, Lease: deduptest.Lease, Seed: seed,
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = opened(t, s.path)
		if s.Seed() != seed {
			t.Fatal("another seed after opening the file again")
		}
	}
	// What it is for: the token can be named again, and is still the attempt's.
	token := s.Seed().Token(res.Receipt.Key, res.Receipt.Attempt)
	if res, err := s.Apply(t.Context(), dedup.Confirm{
		Key: res.Receipt.Key, Token: dedup.HashToken(token), Outcome: dedup.Commit, At: deduptest.Start,
	}); err != nil || !res.Changed {
		t.Fatalf("%+v, %v", res, err)
	}
}

func TestAFileOfAnEarlyVersionGetsASeed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "receipts.db")
	copyFile(t, filepath.Join("testdata", "format1.db"), path)
	before := metaOf(t, path, metaSeed)
	s := opened(t, path)
	seed := s.Seed()
	if len(before) != 0 || seed == (dedup.Seed{}) {
		t.Fatalf("a seed of %d bytes was there, of the opened file it is zero: %t", len(before), seed == dedup.Seed{})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if stored := metaOf(t, path, metaSeed); !bytes.Equal(stored, seed[:]) {
		t.Fatal("the file does not hold it")
	}
	if again := opened(t, path); again.Seed() != seed {
		t.Fatal("another seed after opening the file again")
	}
	other := filepath.Join(t.TempDir(), "receipts.db")
	copyFile(t, filepath.Join("testdata", "format1.db"), other)
	if opened(t, other).Seed() == seed {
		t.Fatal("two files were given the same seed")
	}
}

// A seed cut short would make other tokens: attempts could no longer be asked about, and nothing would say why.
func TestADamagedSeedIsRefused(t *testing.T) {
	t.Parallel()
	for name, value := range map[string][]byte{"short": make([]byte, 31), "long": make([]byte, 33)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "receipts.db")
			s, err := Open(path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketMeta).Put(metaSeed, value) }); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(path, Options{}); !errors.Is(err, dedup.ErrCorrupt) {
				t.Fatal(err)
			}
			if stored := metaOf(t, path, metaSeed); !bytes.Equal(stored, value) {
				t.Fatal("the file was changed")
			}
		})
	}
}

// metaOf reads a value of a file that is not open.
func metaOf(t testing.TB, path string, name []byte) []byte {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var value []byte
	if err := db.View(func(tx *bbolt.Tx) error {
		value = bytes.Clone(tx.Bucket(bucketMeta).Get(name))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return value
}
