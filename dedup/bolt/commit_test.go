package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/einlass/einlass/dedup"
	"github.com/einlass/einlass/dedup/deduptest"
)

// failing is a hook that fails with what is stored in it, if anything.
type failing struct{ err atomic.Pointer[error] }

func (f *failing) hook() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

func reserve(t testing.TB, s *Store, event string) (dedup.Result, error) {
	t.Helper()
	return s.Apply(context.Background(), deduptest.Reserve(deduptest.Event(event, "x"), 0, dedup.Redeliver))
}

func mustReserve(t testing.TB, s *Store, event string) dedup.Receipt {
	t.Helper()
	res, err := reserve(t, s, event)
	if err != nil || res.Kind != dedup.Forward {
		t.Fatalf("reserve %s: %v, %v", event, res.Kind, err)
	}
	return res.Receipt
}

func known(t testing.TB, s *Store, event string) bool {
	t.Helper()
	_, found, err := s.Lookup(context.Background(), deduptest.Event(event, "x"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAFullDiskWritesNothingAndPasses(t *testing.T) {
	t.Parallel()
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EROFS, berrors.ErrMaxSizeReached} {
		t.Run(full.Error(), func(t *testing.T) {
			t.Parallel()
			s := opened(t)
			var f failing
			s.hooks.beforeCommit = f.hook
			mustReserve(t, s, "before")
			err := fmt.Errorf("write: %w", full)
			f.err.Store(&err)
			_, err = reserve(t, s, "during")
			if !errors.Is(err, dedup.ErrUnavailable) || !errors.Is(err, dedup.ErrNotWritten) || !errors.Is(err, full) {
				t.Fatal(err)
			}
			if !errors.Is(s.Stats().Failing, full) {
				t.Fatal("not said to be failing:", s.Stats().Failing)
			}
			if known(t, s, "during") || !known(t, s, "before") {
				t.Fatal("reads do not show what is stored")
			}
			f.err.Store(nil)
			mustReserve(t, s, "during")
			if stats := s.Stats(); stats.Receipts[dedup.StateReserved] != 2 || stats.Failing != nil {
				t.Fatalf("%+v", stats)
			}
		})
	}
}

func TestNothingNewIsReservedWhileTheDiskHasNoRoomForTheAnswers(t *testing.T) {
	t.Parallel()
	s := opened(t)
	var f failing
	var room atomic.Int64
	s.hooks.beforeCommit = f.hook
	s.hooks.free = func(string) (int64, bool) { return room.Load(), true }
	running := mustReserve(t, s, "running")
	var full error = syscall.ENOSPC
	f.err.Store(&full)
	if _, err := reserve(t, s, "first to fail"); !errors.Is(err, dedup.ErrNotWritten) {
		t.Fatal(err)
	}
	f.err.Store(nil) // a small write would fit again
	room.Store(leastRoom - 1)
	if _, err := reserve(t, s, "new"); !errors.Is(err, dedup.ErrUnavailable) || !errors.Is(err, dedup.ErrNotWritten) {
		t.Fatalf("a new event was let in: %v", err)
	}
	if res, err := s.Apply(context.Background(), dedup.Finish{
		Key: running.Key, Attempt: running.Attempt, Outcome: dedup.Commit, Answer: dedup.Answer{Status: 200}, At: time.Now(),
	}); err != nil || !res.Receipt.State.Final() {
		t.Fatalf("an answer that fits was refused: %v, %v", res.Receipt.State, err)
	}
	if _, err := reserve(t, s, "new"); !errors.Is(err, dedup.ErrUnavailable) {
		t.Fatalf("a new event was let in after an answer had fit: %v", err)
	}
	room.Store(leastRoom)
	mustReserve(t, s, "new")
}

func TestNothingIsWrittenToAFileThatIsNoLongerAtItsPath(t *testing.T) {
	t.Parallel()
	s := opened(t)
	mustReserve(t, s, "before")
	away := s.path + ".away"
	if err := os.Rename(s.path, away); err != nil {
		t.Skipf("an open file cannot be moved here: %v", err)
	}
	for name, replace := range map[string]func() error{
		"removed":  func() error { return nil },
		"replaced": func() error { return os.WriteFile(s.path, []byte("another"), 0o600) },
	} {
		if err := replace(); err != nil {
			t.Fatal(err)
		}
		if _, err := reserve(t, s, "meanwhile"); !errors.Is(err, dedup.ErrUnavailable) || !errors.Is(err, dedup.ErrNotWritten) || !strings.Contains(err.Error(), s.path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !known(t, s, "before") || known(t, s, "meanwhile") {
		t.Error("reads do not show what is stored")
	}
	if err := os.Rename(away, s.path); err != nil {
		t.Fatal(err)
	}
	mustReserve(t, s, "put back")
}

func TestADamagedGuardEntryIsTheTroubleOfItsOwnEventOnly(t *testing.T) {
	t.Parallel()
	s := opened(t)
	id := deduptest.Guarded("guarded", "content")
	res, err := s.Apply(context.Background(), deduptest.Reserve(id, 0, dedup.Redeliver))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(context.Background(), deduptest.Finish(id.Key, res.Receipt.Attempt, dedup.Abort, 0)); err != nil {
		t.Fatal(err)
	}
	err = s.db.Update(func(tx *bbolt.Tx) error {
		b, err := openBuckets(tx)
		if err != nil {
			return err
		}
		guard := dedup.GuardHash(id.Source, id.Digest)
		return b.digests.Put(guard[:], make([]byte, keySize+4))
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(context.Background(), deduptest.Reserve(id, 0, dedup.Redeliver)); !errors.Is(err, dedup.ErrCorrupt) || !errors.Is(err, dedup.ErrNotWritten) {
		t.Errorf("got %v", err)
	}
	mustReserve(t, s, "another")
}

func TestAnUnknownCommitGivesTheHandleUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after error
		written       bool // what a reader of the file finds afterwards
	}{
		"input/output error before":          {before: syscall.EIO},
		"input/output error after":           {after: syscall.EIO, written: true},
		"disk full, told only at the flush":  {after: syscall.ENOSPC, written: true},
		"an error that nobody thought about": {before: io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := opened(t)
			var before, after failing
			s.hooks = hooks{beforeCommit: before.hook, afterCommit: after.hook}
			mustReserve(t, s, "before")
			if c.before != nil {
				before.err.Store(&c.before)
			}
			if c.after != nil {
				after.err.Store(&c.after)
			}
			_, err := reserve(t, s, "during")
			if !errors.Is(err, dedup.ErrUnavailable) || errors.Is(err, dedup.ErrNotWritten) {
				t.Fatal(err)
			}
			before.err.Store(nil)
			after.err.Store(nil)
			if _, err := reserve(t, s, "after"); !errors.Is(err, dedup.ErrUnavailable) || !errors.Is(err, dedup.ErrNotWritten) {
				t.Fatal("a write:", err)
			}
			if _, _, err := s.Lookup(t.Context(), deduptest.Event("before", "x")); !errors.Is(err, dedup.ErrUnavailable) {
				t.Fatal("a read:", err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			again := opened(t, s.path)
			if !known(t, again, "before") || known(t, again, "during") != c.written || known(t, again, "after") {
				t.Fatal("the file holds something else")
			}
		})
	}
}

func TestNobodyReadsAReceiptBeforeItIsDurable(t *testing.T) {
	t.Parallel()
	s := opened(t)
	mustReserve(t, s, "other")
	flushing, let := make(chan struct{}), make(chan struct{})
	s.hooks.afterCommit = func() error { // bbolt shows the transaction to readers from here on
		close(flushing)
		<-let
		return nil
	}
	written := make(chan error, 1)
	go func() { _, err := reserve(t, s, "e"); written <- err }()
	<-flushing
	if !known(t, s, "other") || known(t, s, "unknown") {
		t.Fatal("other events are not read as they are")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, _, err := s.Lookup(ctx, deduptest.Event("e", "x")); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	read := make(chan bool, 1)
	go func() { read <- known(t, s, "e") }()
	close(let)
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if !<-read {
		t.Fatal("durable, and not found")
	}
}

func TestAReaderOfAFailedCommitGetsNothing(t *testing.T) {
	t.Parallel()
	s := opened(t)
	flushing, let := make(chan struct{}), make(chan struct{})
	s.hooks.afterCommit = func() error {
		close(flushing)
		<-let
		return syscall.EIO
	}
	go func() { _, _ = reserve(t, s, "e") }()
	<-flushing
	read := make(chan error, 1)
	go func() {
		_, _, err := s.Lookup(context.Background(), deduptest.Event("e", "x"))
		read <- err
	}()
	close(let)
	if err := <-read; !errors.Is(err, dedup.ErrUnavailable) {
		t.Fatal(err)
	}
}

// stuck is a store whose writer is in the middle of a commit until let is closed.
func stuck(t *testing.T) (s *Store, let chan struct{}) {
	t.Helper()
	s = opened(t)
	let = make(chan struct{})
	entered := make(chan struct{})
	var once sync.Once
	s.hooks.beforeCommit = func() error {
		once.Do(func() { close(entered) })
		<-let
		return nil
	}
	go func() { _, _ = reserve(t, s, "first") }()
	<-entered
	return s, let
}

func TestACallerThatGivesUpHasWrittenNothing(t *testing.T) {
	t.Parallel()
	s, let := stuck(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := s.Apply(ctx, deduptest.Reserve(deduptest.Event("e", "x"), 0, dedup.Redeliver))
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, dedup.ErrNotWritten) {
		t.Fatal(err)
	}
	close(let)
	mustReserve(t, s, "next")
	if known(t, s, "e") {
		t.Fatal("written after all")
	}
}

func TestAFullQueueRefusesReservationsAndKeepsEnds(t *testing.T) {
	t.Parallel()
	s, let := stuck(t)
	var group sync.WaitGroup
	refused := make(chan struct{}, 2*queueLength)
	for i := range 2 * queueLength {
		group.Go(func() {
			switch _, err := reserve(t, s, fmt.Sprint(i)); {
			case err == nil:
			case errors.Is(err, dedup.ErrUnavailable) && errors.Is(err, dedup.ErrNotWritten):
				refused <- struct{}{}
			default:
				t.Error(err)
			}
		})
	}
	for range queueLength { // the writer is stuck: that many have to be refused
		<-refused
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	end := deduptest.Finish(deduptest.Event("first", "x").Key, uint64(deduptest.Start.UnixMilli()), dedup.Commit, 0)
	if _, err := s.Apply(ctx, end); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, dedup.ErrNotWritten) {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { _, err := s.Apply(t.Context(), end); ended <- err }()
	close(let)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	group.Wait()
	if n := s.Stats().Receipts[dedup.StateReserved]; n != queueLength {
		t.Fatalf("%d reserved, %d more refused", n, len(refused))
	}
}

func TestCloseWritesWhatIsQueued(t *testing.T) {
	t.Parallel()
	s, let := stuck(t)
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			if _, err := reserve(t, s, fmt.Sprint(i)); err != nil && !errors.Is(err, dedup.ErrClosed) {
				t.Error(err)
			}
		})
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	close(let)
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	group.Wait()
}

func TestMaxSizeIsALimitThatPasses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "receipts.db")
	s, err := Open(path, Options{MaxSize: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { verify(t, s) })
	var last error
	written := 0
	for ; last == nil && written < 5000; written++ {
		_, last = reserve(t, s, fmt.Sprintf("%0200d", written))
	}
	if !errors.Is(last, dedup.ErrUnavailable) || !errors.Is(last, dedup.ErrNotWritten) {
		t.Fatal(written, last)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 256<<10 {
		t.Fatal(info.Size(), err)
	}
	if !known(t, s, fmt.Sprintf("%0200d", 0)) || s.usable() != nil {
		t.Fatal("a full file is not read")
	}
}

func TestAFileThatCannotGrowIsFull(t *testing.T) {
	t.Parallel()
	s := opened(t)
	mustReserve(t, s, "before")
	// As bbolt tells it; a real one would need a full file system.
	grow := fmt.Errorf("file resize error: %s", (&os.PathError{Op: "truncate", Path: s.path, Err: syscall.EFBIG}).Error())
	s.hooks.beforeCommit = func() error { return grow }
	if _, err := reserve(t, s, "during"); !errors.Is(err, dedup.ErrNotWritten) {
		t.Fatal(err)
	}
	grow = fmt.Errorf("file resize error: %s", (&os.PathError{Op: "truncate", Path: s.path, Err: syscall.EIO}).Error())
	if _, err := reserve(t, s, "during"); errors.Is(err, dedup.ErrNotWritten) {
		t.Fatal(err)
	}
}

func TestADamagedRecordIsNotAnAbsentOne(t *testing.T) {
	t.Parallel()
	s := opened(t)
	mustReserve(t, s, "good")
	k := deduptest.Event("bad", "x").Hash()
	mustReserve(t, s, "bad")
	var good []byte
	damage := func(change func([]byte) []byte) {
		if err := s.db.Update(func(tx *bbolt.Tx) error {
			live := tx.Bucket(bucketLive)
			if good == nil {
				good = append(good, live.Get(k[:])...)
			}
			s.durable.Store(int64(tx.ID()))
			return live.Put(k[:], change(append([]byte(nil), good...)))
		}); err != nil {
			t.Fatal(err)
		}
	}
	other := deduptest.Event("good", "x").Hash()
	for name, change := range map[string]func([]byte) []byte{
		"a bit":          func(b []byte) []byte { b[7] ^= 1; return b },
		"the checksum":   func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"cut":            func(b []byte) []byte { return b[:len(b)-1] },
		"empty":          func([]byte) []byte { return nil },
		"for another id": func(b []byte) []byte { return seal(other, b[:len(b)-4]) },
		"sealed, but of another event": func([]byte) []byte {
			return seal(k, dedup.AppendReceipt(nil, dedup.Receipt{Key: dedup.Key{Source: "s", Event: "e"}, State: dedup.StateOpen}))
		},
	} {
		damage(change)
		if _, _, err := s.Lookup(t.Context(), deduptest.Event("bad", "x")); !errors.Is(err, dedup.ErrCorrupt) {
			t.Errorf("%s: lookup: %v", name, err)
		}
		if _, err := reserve(t, s, "bad"); !errors.Is(err, dedup.ErrCorrupt) || !errors.Is(err, dedup.ErrNotWritten) {
			t.Errorf("%s: reserve: %v", name, err)
		}
		if err := s.Check(t.Context()); !errors.Is(err, dedup.ErrCorrupt) {
			t.Errorf("%s: check: %v", name, err)
		}
		if !known(t, s, "good") {
			t.Errorf("%s: the good record cannot be read", name)
		}
	}
	damage(func(b []byte) []byte { return b })
}

func FuzzDecode(f *testing.F) {
	k := deduptest.Event("e", "x").Hash()
	f.Add(seal(k, dedup.AppendReceipt(nil, dedup.Receipt{Key: deduptest.Event("e", "x").Key, State: dedup.StateOpen})), true)
	f.Add([]byte{1, 2, 3}, false)
	f.Fuzz(func(t *testing.T, b []byte, sealed bool) {
		if sealed { // past the checksum, or nothing but the checksum would be tried
			b = seal(k, b)
		}
		r, err := decode(k, b)
		if err != nil && !errors.Is(err, dedup.ErrCorrupt) && !errors.Is(err, dedup.ErrNewerFormat) {
			t.Fatal(err)
		}
		if err == nil && r.Hash() != k {
			t.Fatal("another event's record")
		}
	})
}
