package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"go.etcd.io/bbolt"

	"github.com/einlass/einlass/dedup"
)

// The file, format 1. This is the only place that knows its names and keys.
//
//	meta                 format, store id, incarnation, created, counts
//	live                 16 B key            -> record of an undecided event (reserved, open, held)
//	receipts/<period>    16 B key            -> record of a final event
//	digests/<period>     16 B guard hash     -> 16 B key + checksum; sources with a replay guard only
//
// A key is dedup.Key.Hash, a guard hash dedup.GuardHash, a time ms since 1970 as 8 bytes big endian. A record is a
// receipt (dedup.AppendReceipt) and a CRC-32C over key and receipt: bbolt itself checks only its two meta pages.
//
// Undecided events have a bucket of their own because they are few: the groups of a busy gate then touch fewer pages,
// and what is in doubt, or whose lease has ended, is found without reading a million receipts; an index of lease ends
// would cost two writes a delivery. A bucket that this version does not know (an early one had such an index, "due")
// is left alone.
const formatVersion = 1

var (
	bucketMeta     = []byte("meta")
	bucketLive     = []byte("live")
	bucketReceipts = []byte("receipts")
	bucketDigests  = []byte("digests")

	metaFormat      = []byte("format")      // 4 B big endian
	metaStore       = []byte("store")       // 16 B random: which store this is
	metaIncarnation = []byte("incarnation") // 8 B big endian: how often it was opened
	metaCreated     = []byte("created")     // time
	metaCounts      = []byte("counts")      // receipts by state, 8 B big endian each
	metaSeed        = []byte("seed")        // 32 B random: dedup.Seed; a file of an early version gets it when it is opened
)

// periodForever is the period of what is never forgotten. Retention adds others: the time a period begins, as
// time key, so that whole periods can be walked and dropped in order.
var periodForever = make([]byte, 8)

const keySize = 16

type key = [keySize]byte

// buckets are the open buckets of one transaction. They are valid until it ends.
type buckets struct {
	meta, live, receipts, digests *bbolt.Bucket
}

func openBuckets(tx *bbolt.Tx) (b buckets, err error) {
	b.meta, b.live = tx.Bucket(bucketMeta), tx.Bucket(bucketLive)
	if outer := tx.Bucket(bucketReceipts); outer != nil {
		b.receipts = outer.Bucket(periodForever)
	}
	if outer := tx.Bucket(bucketDigests); outer != nil {
		b.digests = outer.Bucket(periodForever)
	}
	if b.meta == nil || b.live == nil || b.receipts == nil || b.digests == nil {
		return b, fmt.Errorf("%w: not a store of receipts, or parts of it are missing", dedup.ErrCorrupt)
	}
	return b, nil
}

// createBuckets lays out a new store.
func createBuckets(tx *bbolt.Tx, id [16]byte, created time.Time) error {
	for _, name := range [][]byte{bucketMeta, bucketLive, bucketReceipts, bucketDigests} {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	for _, name := range [][]byte{bucketReceipts, bucketDigests} {
		if _, err := tx.Bucket(name).CreateBucket(periodForever); err != nil {
			return err
		}
	}
	meta := tx.Bucket(bucketMeta)
	for _, e := range []struct{ name, value []byte }{
		{metaFormat, binary.BigEndian.AppendUint32(nil, formatVersion)},
		{metaStore, id[:]},
		{metaIncarnation, make([]byte, 8)},
		{metaCreated, binary.BigEndian.AppendUint64(nil, uint64(created.UnixMilli()))},
		{metaCounts, appendCounts(counts{})},
	} {
		if err := meta.Put(e.name, e.value); err != nil {
			return err
		}
	}
	return nil
}

// checkFormat refuses a store that this version would misread.
func checkFormat(b buckets) error {
	value := b.meta.Get(metaFormat)
	if len(value) != 4 {
		return fmt.Errorf("%w: no format version", dedup.ErrCorrupt)
	}
	if v := binary.BigEndian.Uint32(value); v != formatVersion {
		return fmt.Errorf("%w: store format %d, this version knows %d", dedup.ErrNewerFormat, v, formatVersion)
	}
	return nil
}

// counts are the receipts by state. They are for people: nothing is decided by them.
type counts [dedup.States]uint64

func appendCounts(c counts) []byte {
	b := make([]byte, 0, 8*len(c))
	for _, n := range c {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func readCounts(b buckets) (c counts) {
	value := b.meta.Get(metaCounts)
	for i := range c {
		if len(value) >= 8*(i+1) {
			c[i] = binary.BigEndian.Uint64(value[8*i:])
		}
	}
	return c
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal appends a checksum over key and value to the value.
func seal(k key, value []byte) []byte {
	sum := crc32.Update(crc32.Checksum(k[:], castagnoli), castagnoli, value)
	return binary.BigEndian.AppendUint32(value, sum)
}

// unseal checks and takes off the checksum. What it returns is part of sealed.
func unseal(k key, sealed []byte) ([]byte, error) {
	if len(sealed) < crc32.Size {
		return nil, fmt.Errorf("%w: record %x has no checksum", dedup.ErrCorrupt, k)
	}
	value := sealed[:len(sealed)-crc32.Size]
	sum := crc32.Update(crc32.Checksum(k[:], castagnoli), castagnoli, value)
	if sum != binary.BigEndian.Uint32(sealed[len(value):]) {
		return nil, fmt.Errorf("%w: record %x has a wrong checksum", dedup.ErrCorrupt, k)
	}
	return value, nil
}

// decode reads a record. The receipt shares no memory with it.
func decode(k key, sealed []byte) (dedup.Receipt, error) {
	value, err := unseal(k, sealed)
	if err != nil {
		return dedup.Receipt{}, err
	}
	r, err := dedup.DecodeReceipt(value)
	if err != nil {
		return dedup.Receipt{}, fmt.Errorf("record %x: %w", k, err)
	}
	if r.Hash() != k {
		return dedup.Receipt{}, fmt.Errorf("%w: record %x is that of another event", dedup.ErrCorrupt, k)
	}
	return r, nil
}
