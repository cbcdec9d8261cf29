package bolt

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/einlass/einlass/dedup"
	"github.com/einlass/einlass/dedup/deduptest"
)

// opened is a store in a new file, or at path. The file must be consistent when the test ends.
func opened(t testing.TB, path ...string) *Store {
	t.Helper()
	path = append(path, filepath.Join(t.TempDir(), "receipts.db"))
	s, err := Open(path[0], Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { verify(t, s) })
	return s
}

// verify closes the store, opens its file anew and checks it.
func verify(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	again, err := Open(s.path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Check(context.Background()); err != nil {
		t.Errorf("the file is inconsistent: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func TestBoltConforms(t *testing.T) {
	t.Parallel()
	deduptest.Exercise(t, func(t *testing.T) dedup.Store { return opened(t) })
}
