package caddy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/einlass/einlass/dedup"
	"github.com/einlass/einlass/dedup/bolt"
)

func init() {
	caddy.RegisterModule(new(BoltStore))
}

// BoltStore keeps receipts in one file on a local disk. One process can have it open; it is shared across
// config reloads. Network file systems are not supported.
type BoltStore struct {
	// The file. Its directory is made if it is missing. Default: `einlass/receipts.db` in Caddy's data
	// directory.
	Path string `json:"path,omitempty"`

	path string
}

// CaddyModule returns the Caddy module information.
func (*BoltStore) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "webhook_gate.stores.bolt",
		New: func() caddy.Module { return new(BoltStore) },
	}
}

// Provision resolves the path; it touches no file.
func (s *BoltStore) Provision(caddy.Context) error {
	path, err := caddy.NewReplacer().ReplaceOrErr(s.Path, true, true)
	if err != nil {
		return fmt.Errorf("path: %w", err)
	}
	if path == "" {
		path = filepath.Join(caddy.AppDataDir(), "einlass", "receipts.db")
	}
	s.path, err = canonicalPath(path)
	return err
}

// Key is the canonical path.
func (s *BoltStore) Key() string { return s.path }

// Open opens the file, making it and its directory where they are missing.
func (s *BoltStore) Open() (dedup.Store, error) {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of the store: %w", err)
	}
	return bolt.Open(s.path, bolt.Options{})
}

// UnmarshalCaddyfile sets up the store from Caddyfile tokens:
//
//	store bolt [<path>]
func (s *BoltStore) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // store name
	if d.NextArg() {
		s.Path = d.Val()
	}
	if d.NextArg() {
		return d.Errf("store bolt takes one path, got also %q: quote a path that has blanks", d.Val())
	}
	if d.NextBlock(0) {
		return d.Errf("unrecognized option %q: store bolt takes only a path", d.Val())
	}
	return nil
}

// canonicalPath makes two spellings of one file equal: opened under both, it would wait for its own lock.
func canonicalPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("path %s: %w", path, err)
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("path %s: %w", path, err)
	}
	dir := filepath.Dir(abs)
	if dir == abs {
		return abs, nil
	}
	dir, err = canonicalPath(dir)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.Base(abs)), nil
}

// Interface guards
var (
	_ Store                 = (*BoltStore)(nil)
	_ caddy.Provisioner     = (*BoltStore)(nil)
	_ caddyfile.Unmarshaler = (*BoltStore)(nil)
)
