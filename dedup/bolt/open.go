package bolt

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/einlass/einlass/dedup"
)

const defaultTimeout = 3 * time.Second

// Open opens the store in the file at path, or makes it there; the directory must exist. Two open stores must never
// share a file: the caller sees to it that every spelling of a path comes as one.
//
// Errors name the path. dedup.ErrLocked: another process (or another Store) has the file open and did not let go of
// it within Options.Timeout. dedup.ErrCorrupt: the file is damaged or no store of receipts; it is not touched.
// dedup.ErrNewerFormat: a newer version has written it. Anything else is the operating system's.
func Open(path string, o Options) (*Store, error) {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		if err := create(path); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, fmt.Errorf("opening the store of receipts: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("opening the store of receipts: %s is not a regular file", path)
	case info.Size() == 0:
		// bbolt would fill it, but where there were receipts an empty file means that they are lost.
		return nil, damaged(path, errors.New("the file is empty; to begin with a new store remove it"))
	}
	db, err := openFile(path, o)
	if err != nil {
		return nil, err
	}
	db.AllocSize = growth(o.MaxSize)
	info, err := os.Stat(path)
	if err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("opening the store of receipts: %w", err)
	}
	s := &Store{path: path, file: info, db: db, queue: make(chan *op, queueLength)}
	if err := s.begin(); err != nil {
		_ = db.Close()
		return nil, err
	}
	s.writer.Add(1)
	go s.write()
	return s, nil
}

// openFile opens an existing file, and lets go of it again if bbolt cannot make sense of it: it may panic then.
func openFile(path string, o Options) (db *bbolt.DB, err error) {
	var file *os.File
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // a file cut short faults where its pages are read
	defer func() {
		if p := recover(); p != nil {
			err = damaged(path, fmt.Errorf("%v", p))
			if file != nil {
				unlock(file)
				_ = file.Close()
			}
		}
	}()
	options := &bbolt.Options{
		Timeout:         o.Timeout,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: initialMmapSize(),
		MaxSize:         int(min(o.MaxSize, int64(maxInt))),
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			// Not to be created here: a file is made under another name first (create).
			var err error
			file, err = os.OpenFile(name, flag&^os.O_CREATE, mode)
			return file, err
		},
	}
	db, err = bbolt.Open(path, 0o600, options)
	switch {
	case err == nil:
	case errors.Is(err, berrors.ErrTimeout):
		return nil, fmt.Errorf("%w: %s: another process has this file open; is another Caddy running? "+
			"use `caddy reload`", dedup.ErrLocked, path)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist), isFull(err):
		return nil, fmt.Errorf("opening the store of receipts for writing: %w", err)
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum),
		errors.Is(err, berrors.ErrVersionMismatch):
		return nil, damaged(path, err)
	default:
		return nil, fmt.Errorf("opening the store of receipts %s: %w", path, err)
	}
	if err := wholeFile(db, path, file); err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}

// wholeFile refuses a file that lacks its end, and one that is no longer at its path: it would be written to, and
// the next process would not find it.
func wholeFile(db *bbolt.DB, path string, file *os.File) error {
	if !sameFile(path, file) {
		return fmt.Errorf("opening the store of receipts: %s was replaced meanwhile; try again", path)
	}
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("opening the store of receipts: %w", err)
	}
	return db.View(func(tx *bbolt.Tx) error {
		if tx.Size() > info.Size() {
			return damaged(path, fmt.Errorf("it should have %d bytes and has %d", tx.Size(), info.Size()))
		}
		return nil
	})
}

// begin reads what the store is and counts this opening.
func (s *Store) begin() (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = damaged(s.path, fmt.Errorf("%v", p))
		}
	}()
	var (
		opening int64
		seeded  bool // the file had no seed and gets one
	)
	err = s.db.Update(func(tx *bbolt.Tx) error {
		opening = int64(tx.ID())
		b, err := openBuckets(tx)
		if err != nil {
			return err
		}
		if err := checkFormat(b); err != nil {
			return err
		}
		id, n := b.meta.Get(metaStore), b.meta.Get(metaIncarnation)
		if len(id) != len(s.id) || len(n) != 8 {
			return fmt.Errorf("%w: no store id", dedup.ErrCorrupt)
		}
		copy(s.id[:], id)
		s.incarnation = binary.BigEndian.Uint64(n) + 1
		if seeded, err = s.readSeed(b); err != nil {
			return err
		}
		c := readCounts(b)
		s.counts.Store(&c)
		return b.meta.Put(metaIncarnation, binary.BigEndian.AppendUint64(nil, s.incarnation))
	})
	switch {
	case errors.Is(err, dedup.ErrCorrupt):
		return damaged(s.path, err)
	case errors.Is(err, dedup.ErrNewerFormat):
		return fmt.Errorf("opening %s: %w", s.path, err)
	case err != nil && (seeded || !isFull(err) || !s.rolledBack(opening)):
		return fmt.Errorf("writing to the store of receipts %s: %w", s.path, err)
	}
	// On a full disk receipts can still be answered from: writes will say so themselves.
	return s.db.View(func(tx *bbolt.Tx) error {
		s.durable.Store(int64(tx.ID()))
		return nil
	})
}

// readSeed reads the store's seed, or makes it.
func (s *Store) readSeed(b buckets) (made bool, err error) {
	switch seed := b.meta.Get(metaSeed); len(seed) {
	case len(s.seed):
		copy(s.seed[:], seed)
		return false, nil
	case 0:
		_, _ = rand.Read(s.seed[:]) // never fails, says its documentation
		return true, b.meta.Put(metaSeed, s.seed[:])
	default:
		return false, fmt.Errorf("%w: a seed of %d bytes", dedup.ErrCorrupt, len(seed))
	}
}

// growth is by how much the file grows at a time, each time at the cost of one more flush. bbolt's own 16 MiB would
// be the size of an almost empty store; and it checks MaxSize against less than it then takes, unless the step is
// small beside the limit.
func growth(maxSize int64) int {
	const step = 1 << 20
	if maxSize <= 0 || maxSize/16 > step {
		return step
	}
	page := int64(os.Getpagesize())
	return int(max(maxSize/16/page*page, page))
}

func damaged(path string, cause error) error {
	if errors.Is(cause, dedup.ErrCorrupt) {
		return fmt.Errorf("%s: %w; restore it from a backup", path, cause)
	}
	return fmt.Errorf("%s: %w: %w; restore it from a backup", path, dedup.ErrCorrupt, cause)
}

const maxInt = int(^uint(0) >> 1)

// initialMmapSize reserves address space, so that the file can grow without waiting for readers. Windows would make
// the file that large at once, and 32 bits have no such space.
func initialMmapSize() int {
	if strconv.IntSize < 64 || runtime.GOOS == "windows" {
		return 0
	}
	size := int64(4) << 30
	return int(size)
}
