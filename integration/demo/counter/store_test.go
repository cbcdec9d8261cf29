package counter

import (
	"path/filepath"
	"sync"
	"testing"
)

func openStore(t *testing.T) (*Store, *Ledger) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "counter & co #1?.db") // the name must not be read as a URL
	store, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	ledger, err := OpenLedger(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ledger.Close() })
	return store, ledger
}

func checkTotal(t *testing.T, ledger *Ledger, want int64) {
	t.Helper()
	total, applied, err := ledger.Total(t.Context())
	if err != nil || total != want || applied != want {
		t.Errorf("the counter is at %d, the rows add up to %d (%v); want %d", total, applied, err, want)
	}
}

func TestStoreAppliesAnEventOnce(t *testing.T) {
	t.Parallel()
	store, ledger := openStore(t)
	for _, step := range []struct {
		event string
		value int64
		want  int64
	}{
		{"evt-a", 5, 5},
		{"evt-b", 7, 12},
		{"evt-a", 5, 5},
		{"evt-a", 99, 5},
		{"evt-b", 7, 12},
	} {
		got, err := store.Apply(t.Context(), step.event, step.value, "token of "+step.event)
		if err != nil || got != step.want {
			t.Errorf("%s: got %d, %v; want %d", step.event, got, err, step.want)
		}
	}
	checkTotal(t, ledger, 12)
	outcome, ok, err := ledger.Outcome(t.Context(), "evt-b")
	if want := (Outcome{Applied: 7, Total: 12, Token: "token of evt-b"}); outcome != want || !ok || err != nil {
		t.Errorf("got %+v, %v, %v", outcome, ok, err)
	}
	if _, ok, err := ledger.Outcome(t.Context(), "evt-c"); ok || err != nil {
		t.Errorf("an event that never came has a row: %v, %v", ok, err)
	}
}

func TestStoreAppliesAnEventOnceInParallel(t *testing.T) {
	t.Parallel()
	store, ledger := openStore(t)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if got, err := store.Apply(t.Context(), "evt-a", 3, ""); err != nil || got != 3 {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
	wg.Wait()
	checkTotal(t, ledger, 3)
}

func TestStoreKeepsItsOutcomesWhenReopened(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "counter.db")
	for range 3 {
		store, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := store.Apply(t.Context(), "evt-a", 4, ""); err != nil || got != 4 {
			t.Errorf("got %d, %v", got, err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLedgerCannotWrite(t *testing.T) {
	t.Parallel()
	store, ledger := openStore(t)
	if _, err := store.Apply(t.Context(), "evt-a", 1, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.db.ExecContext(t.Context(), `UPDATE counter SET total = 100`); err == nil {
		t.Error("it wrote")
	}
	checkTotal(t, ledger, 1)
}

func TestLedgerNeedsAFile(t *testing.T) {
	t.Parallel()
	if ledger, err := OpenLedger(t.Context(), filepath.Join(t.TempDir(), "missing.db")); err == nil {
		_ = ledger.Close()
		t.Error("a file that is not there was opened")
	}
}
