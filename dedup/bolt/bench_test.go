package bolt

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/einlass/einlass/dedup"
	"github.com/einlass/einlass/dedup/deduptest"
)

// BenchmarkDelivery takes first deliveries through the gate: look up, reserve, commit. One op is one delivery.
func BenchmarkDelivery(b *testing.B) {
	for _, deliveries := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprint(deliveries, " at a time"), func(b *testing.B) {
			s, err := Open(filepath.Join(b.TempDir(), "receipts.db"), Options{})
			if err != nil {
				b.Fatal(err)
			}
			g := dedup.NewGate(s, dedup.GateOptions{})
			policy := dedup.Policy{Lease: time.Minute}
			answer := dedup.Answer{Status: 200, Header: []dedup.Field{{Name: "Content-Type", Value: "application/json"}}, Body: make([]byte, 100)}
			var next atomic.Int64
			var group sync.WaitGroup
			b.ResetTimer()
			for range deliveries {
				group.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						id := deduptest.Event(fmt.Sprint("evt_", i), "x")
						if err := deliver(g, id, policy, answer); err != nil {
							b.Error(err)
						}
					}
				})
			}
			group.Wait()
			b.StopTimer()
			stats := s.Stats()
			b.ReportMetric(float64(stats.Syncs)/float64(b.N), "fsyncs/delivery")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
			if err := g.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func deliver(g *dedup.Gate, id dedup.Identity, p dedup.Policy, answer dedup.Answer) error {
	ctx := context.Background()
	if _, err := g.LookUp(ctx, id, p); err != nil {
		return err
	}
	v, err := g.Reserve(ctx, id, p)
	if err != nil || v.Kind != dedup.Forward {
		return fmt.Errorf("reserve: %v, %w", v.Kind, err)
	}
	_, err = v.Attempt.Commit(ctx, answer)
	return err
}

// BenchmarkRepeat looks up committed events, while others are written and while none are.
func BenchmarkRepeat(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), "receipts.db"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	g := dedup.NewGate(s, dedup.GateOptions{})
	policy := dedup.Policy{Lease: time.Minute}
	var group sync.WaitGroup
	for worker := range 50 {
		group.Go(func() {
			for i := worker; i < 10000; i += 50 {
				if err := deliver(g, deduptest.Event(fmt.Sprint("evt_", i), "x"), policy, dedup.Answer{Body: make([]byte, 100)}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	group.Wait()
	b.ReportAllocs()
	var next atomic.Int64
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			id := deduptest.Event(fmt.Sprint("evt_", next.Add(7919)%10000), "x")
			if v, err := g.LookUp(context.Background(), id, policy); err != nil || v.Kind != dedup.Replay {
				b.Fatal(v.Kind, err)
			}
		}
	})
	b.StopTimer()
	if err := g.Close(); err != nil {
		b.Fatal(err)
	}
}
