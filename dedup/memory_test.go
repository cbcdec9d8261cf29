package dedup_test

import (
	"testing"

	"github.com/einlass/einlass/dedup"
	"github.com/einlass/einlass/dedup/deduptest"
)

func TestMemoryConforms(t *testing.T) {
	t.Parallel()
	deduptest.Exercise(t, func(t *testing.T) dedup.Store {
		s := dedup.NewMemory()
		t.Cleanup(func() { _ = s.Close() })
		return s
	})
}
