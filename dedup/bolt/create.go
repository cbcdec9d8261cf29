package bolt

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"go.etcd.io/bbolt"
)

// create makes a new, empty store at path: complete and flushed under another name first, since a file half made
// at a power failure could not be told from a damaged one. If another process is faster, its file stays.
func create(path string) error {
	dir := filepath.Dir(path)
	temp, err := os.CreateTemp(dir, "."+filepath.Base(path)+".new-*")
	if err != nil {
		return fmt.Errorf("creating the store of receipts %s: its directory must exist and be writable: %w", path, err)
	}
	name := temp.Name()
	defer os.Remove(name)
	if err := temp.Close(); err != nil {
		return fmt.Errorf("creating the store of receipts: %w", err)
	}
	if err := layOut(name); err != nil {
		return fmt.Errorf("creating the store of receipts %s: %w", path, err)
	}
	if err := place(name, path); err != nil {
		return fmt.Errorf("creating the store of receipts: %w", err)
	}
	return syncDir(dir)
}

// layOut writes an empty store into an empty file. bbolt flushes it.
func layOut(name string) error {
	db, err := bbolt.Open(name, 0o600, &bbolt.Options{Timeout: defaultTimeout, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return err
	}
	var id [16]byte
	rand.Read(id[:])
	err = db.Update(func(tx *bbolt.Tx) error { return createBuckets(tx, id, time.Now()) })
	if err == nil {
		err = db.Sync()
	}
	return errors.Join(err, db.Close())
}

// place gives a finished file its name. A link never replaces a file that another process has put there since;
// a rename would, and two processes would each hold a store. Not every file system has links.
func place(name, path string) error {
	err := os.Link(name, path)
	switch {
	case err == nil, errors.Is(err, fs.ErrExist):
		return nil
	case runtime.GOOS == "windows": // a file in use is not replaced there
		return os.Rename(name, path)
	}
	if _, missing := os.Lstat(path); !errors.Is(missing, fs.ErrNotExist) {
		return nil
	}
	return os.Rename(name, path)
}

// syncDir makes a new name durable. Windows has no such call.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("flushing the directory of the store: %w", err)
	}
	if err := d.Sync(); err != nil {
		_ = d.Close()
		return fmt.Errorf("flushing the directory of the store: %w", err)
	}
	return d.Close()
}
