package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/einlass/einlass/dedup"
	"github.com/einlass/einlass/dedup/deduptest"
)

var update = flag.Bool("update", false, "write testdata anew")

func TestOpeningCountsAndKeepsTheStoresIdentity(t *testing.T) {
	t.Parallel()
	s := opened(t)
	if s.Incarnation() != 1 || s.ID() == ([16]byte{}) {
		t.Fatal(s.Incarnation(), s.ID())
	}
	mustReserve(t, s, "e")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := opened(t, s.path)
	if again.Incarnation() != 2 || again.ID() != s.ID() || !known(t, again, "e") {
		t.Fatal(again.Incarnation())
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(s.path), ".*"))
	if err != nil || len(left) != 0 {
		t.Fatal("left behind:", left, err)
	}
	if info, err := os.Stat(s.path); err != nil || (runtime.GOOS != "windows" && info.Mode().Perm() != 0o600) {
		t.Fatal(info.Mode(), err)
	}
}

func TestASecondOpenerIsToldWhatToDo(t *testing.T) {
	t.Parallel()
	s := opened(t)
	_, err := Open(s.path, Options{Timeout: 100 * time.Millisecond})
	if !errors.Is(err, dedup.ErrLocked) || !strings.Contains(err.Error(), s.path) ||
		!strings.Contains(err.Error(), "another process has this file open; is another Caddy running? use `caddy reload`") {
		t.Fatal(err)
	}
	mustReserve(t, s, "e")
}

func TestManyCreateOneStore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "receipts.db")
	ids := make(chan [16]byte, 8)
	for range cap(ids) {
		go func() {
			s, err := Open(path, Options{Timeout: 30 * time.Second})
			if err != nil {
				t.Error(err)
				ids <- [16]byte{}
				return
			}
			id := s.ID()
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			ids <- id
		}()
	}
	first := <-ids
	for range cap(ids) - 1 {
		if id := <-ids; id != first {
			t.Fatal("two stores under one name")
		}
	}
}

func TestADamagedFileIsRefusedByNameAndLeftAlone(t *testing.T) {
	t.Parallel()
	s := opened(t)
	for i := range 300 {
		mustReserve(t, s, strings.Repeat("x", 100)+string(rune('a'+i)))
	}
	var used int64
	if err := s.db.View(func(tx *bbolt.Tx) error { used = tx.Size(); return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	other := filepath.Join(t.TempDir(), "other.db")
	db, err := bbolt.Open(other, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
	foreign, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	zeroed := func(from, to int) []byte {
		b := bytes.Clone(good)
		clear(b[from:to])
		return b
	}
	for name, content := range map[string][]byte{
		"empty":                   {},
		"not a store":             []byte(strings.Repeat("hello\n", 5000)),
		"short":                   good[:100],
		"without its end":         good[:int(used)-page],
		"of two pages":            good[:2*page],
		"with both metas gone":    zeroed(0, 2*page),
		"all zero":                make([]byte, len(good)),
		"with its data gone":      zeroed(2*page, len(good)),
		"another program's bbolt": foreign,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "receipts.db")
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time too: the first must not keep the lock
				_, err := Open(path, Options{Timeout: 200 * time.Millisecond})
				if !errors.Is(err, dedup.ErrCorrupt) || !strings.Contains(err.Error(), path) ||
					!strings.Contains(err.Error(), "restore it from a backup") {
					t.Fatal(err)
				}
			}
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, content) {
				t.Fatal("the file was changed", err)
			}
		})
	}
}

func TestAFileCutShortUnderAnOpenStoreIsAnError(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a mapped file cannot be cut there")
	}
	path := filepath.Join(t.TempDir(), "receipts.db")
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		mustReserve(t, s, strings.Repeat("x", 100)+string(rune('a'+i)))
	}
	if err := os.Truncate(path, int64(2*os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Lookup(t.Context(), deduptest.Event("e", "x")); !errors.Is(err, dedup.ErrCorrupt) {
		t.Fatal(err)
	}
	if _, err := reserve(t, s, "e"); !errors.Is(err, dedup.ErrCorrupt) {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Log(err)
	}
}

func TestWhatCannotBeOpenedSaysWhy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	readOnly := filepath.Join(dir, "read-only.db")
	copyFile(t, opened(t).path, readOnly)
	if err := os.Chmod(readOnly, 0o400); err != nil {
		t.Fatal(err)
	}
	sealed := filepath.Join(dir, "sealed")
	if err := os.Mkdir(sealed, 0o500); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{
		dir:                                  "not a regular file",
		filepath.Join(dir, "none", "x.db"):   "must exist and be writable",
		filepath.Join(file, "x.db"):          "not a directory",
		readOnly:                             "permission denied",
		filepath.Join(sealed, "receipts.db"): "must exist and be writable",
	} {
		if os.Geteuid() == 0 && (path == readOnly || filepath.Dir(path) == sealed) {
			continue // nothing is forbidden to root
		}
		if s, err := Open(path, Options{}); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, %v", path, s, err)
		}
	}
}

func TestANewerFormatIsRefused(t *testing.T) {
	t.Parallel()
	s := opened(t)
	set := func(version uint32) {
		if err := s.db.Update(func(tx *bbolt.Tx) error {
			return tx.Bucket(bucketMeta).Put(metaFormat, binary.BigEndian.AppendUint32(nil, version))
		}); err != nil {
			t.Fatal(err)
		}
	}
	set(formatVersion + 1)
	other := filepath.Join(t.TempDir(), "newer.db")
	copyFile(t, s.path, other)
	set(formatVersion)
	if _, err := Open(other, Options{}); !errors.Is(err, dedup.ErrNewerFormat) || !strings.Contains(err.Error(), other) {
		t.Fatal(err)
	}
}

// The file of format 1 must be readable for ever, with everything in it.
func TestFormat1IsRead(t *testing.T) {
	t.Parallel()
	golden := filepath.Join("testdata", "format1.db")
	path := filepath.Join(t.TempDir(), "receipts.db")
	if *update {
		writeGolden(t, path)
		copyFile(t, path, golden)
	}
	copyFile(t, golden, path)
	s := opened(t, path)
	for event, want := range map[string]dedup.State{
		"reserved": dedup.StateReserved, "open": dedup.StateOpen, "committed": dedup.StateCommitted,
		"rejected": dedup.StateRejected, "held": dedup.StateHeld,
	} {
		r, found, err := s.Lookup(t.Context(), deduptest.Guarded("another id", event))
		if err != nil || !found || r.State != want || r.Event != event || !r.FirstSeen.Equal(deduptest.Start) {
			t.Errorf("%s: %+v, %v", event, r, err)
		}
		if r.State.Final() && !r.Answer.Equal(deduptest.Answer(r.Attempt)) {
			t.Errorf("%s: answer %+v", event, r.Answer)
		}
	}
	if s.Stats().Receipts != [dedup.States]uint64{0, 1, 1, 1, 1, 1} {
		t.Errorf("%v", s.Stats().Receipts)
	}
}

func writeGolden(t *testing.T, path string) {
	t.Helper()
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range []string{"reserved", "open", "committed", "rejected", "held"} {
		id := deduptest.Guarded(event, event)
		res, err := s.Apply(context.Background(), deduptest.Reserve(id, 0, dedup.Redeliver))
		if err != nil {
			t.Fatal(err)
		}
		var next dedup.Transition
		switch n := res.Receipt.Attempt; event {
		case "open":
			next = deduptest.Finish(id.Key, n, dedup.Abort, 0)
		case "committed":
			next = deduptest.Finish(id.Key, n, dedup.Commit, 0)
		case "rejected":
			next = deduptest.Finish(id.Key, n, dedup.Reject, 0)
		case "held":
			next = dedup.Hold{Key: id.Key, At: deduptest.Start.Add(deduptest.Lease)}
		default:
			continue
		}
		if _, err := s.Apply(context.Background(), next); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
