package caddy

import (
	"fmt"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/einlass/einlass/dedup"
)

// Store is what modules in the namespace `webhook_gate.stores` implement: they know where receipts are kept
// and open that place on demand. The open store is shared by every config of the process that names the same
// place, so settings that do not name the place must not be part of Key.
type Store interface {
	caddy.Module

	// Key names the place, after provisioning. Two spellings of one place give one key.
	Key() string

	// Open opens the place. It is called at most once at a time for a key.
	Open() (dedup.Store, error)
}

// stores holds every open store of the process, by the App's key. Configs overlap at a reload, and a request
// may outlive its config, so each of them takes a hold of its own and the last one out closes.
var stores = caddy.NewUsagePool()

// sharedStore is an open store with the protocol above it. Those who wait for an attempt wait in its gate, so
// the end of an attempt of an older config reaches a request of a newer one.
type sharedStore struct {
	gate    *dedup.Gate
	key     string
	logger  *zap.Logger
	configs atomic.Int32 // that use it
}

// Destruct closes the store when the last hold is given back, and says what it has done since it was opened.
func (s *sharedStore) Destruct() error {
	stats := s.gate.Stats()
	if err := s.gate.Close(); err != nil {
		return err
	}
	s.logger.Info("store of receipts closed", zap.String("store", s.key),
		zap.Uint64("transitions", stats.Transitions), zap.Uint64("commits", stats.Commits), zap.Uint64("flushes", stats.Syncs))
	return nil
}

// hold opens the app's store or takes part in it. Every successful hold needs a release.
func (a *App) hold() (*sharedStore, error) {
	value, _, err := stores.LoadOrNew(a.key, func() (caddy.Destructor, error) {
		store, err := a.store.Open()
		if err != nil {
			return nil, err
		}
		gate := dedup.NewGate(store, dedup.GateOptions{Notify: notify})
		a.logger.Info("store of receipts opened", zap.String("store", a.key), zap.Uint64("receipts", total(gate.Stats())))
		return &sharedStore{gate: gate, key: a.key, logger: a.logger}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("store of receipts: %w", err)
	}
	return value.(*sharedStore), nil
}

func total(s dedup.Stats) (n uint64) {
	for _, count := range s.Receipts {
		n += count
	}
	return n
}

func (a *App) release() {
	if _, err := stores.Delete(a.key); err != nil {
		a.logger.Error("closing the store of receipts", zap.Error(err))
	}
}
