package caddy

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/einlass/einlass/dedup"
)

func TestAConfigThatIsTakenBackHasAskedNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := dedup.NewMemory()
		id := dedup.Identity{Key: dedup.Key{Source: "main", Event: "e"}, Digest: dedup.Digest{1}}
		if _, err := store.Apply(t.Context(), dedup.Reserve{Identity: id, At: time.Now(), Lease: time.Minute}); err != nil {
			t.Fatal(err)
		}
		shared := &sharedStore{gate: dedup.NewGate(store, dedup.GateOptions{})}
		defer shared.gate.Close()
		var first, second atomic.Int64
		asking := func(n *atomic.Int64) map[string]dedup.Policy {
			return map[string]dedup.Policy{"main": {Lease: time.Minute, InDoubt: dedup.Ask, Asker: asked(func(dedup.Question) (dedup.Reply, error) {
				n.Add(1)
				return dedup.Reply{Kind: dedup.ReplyPending}, nil
			})}}
		}
		running := shared.use(asking(&first))
		synctest.Wait()
		if first.Load() != 1 {
			t.Fatal("the first config does not ask at once")
		}
		shared.use(asking(&second)).end() // its http app has failed
		time.Sleep(time.Minute)
		if second.Load() != 0 || first.Load() < 2 {
			t.Fatalf("the config that was taken back asked %d times, the running one %d", second.Load(), first.Load())
		}
		next := shared.use(asking(&second))
		running.end()
		asked := first.Load()
		time.Sleep(probation)
		synctest.Wait()
		if second.Load() != 1 || first.Load() != asked {
			t.Fatalf("the new config asked %d times, the old one %d more", second.Load(), first.Load()-asked)
		}
		next.end()
	})
}

func TestACallbackThatComesJustBeforeAnAbortIsStoredDecides(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := callbackGate(t, Handler{})
		var token string
		said := false
		fail := func(tr dedup.Transition) error {
			if f, ok := tr.(dedup.Finish); ok && f.Outcome == dedup.Abort && !said {
				said = true
				wantCode(t, "callback", g.confirm("one", token, saidDone), http.StatusOK, "")
			}
			return nil
		}
		g.store.fail.Store(&fail)
		w := g.deliver(func(w http.ResponseWriter, r *http.Request) error {
			token = r.Header.Get(headerToken)
			w.WriteHeader(http.StatusGone)
			return nil
		}, "one", "{}")
		wantDone(t, "the sender", w, false)
	})
}
