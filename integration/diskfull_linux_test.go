package integration

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/einlass/einlass/integration/internal/app"
)

// TestAFullDiskForwardsNothingAndHealsByItself fills a small file system of its own under the store.
func TestAFullDiskForwardsNothingAndHealsByItself(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("einlass-test", disk, "tmpfs", 0, "size=8m"); err != nil {
		if os.Getenv("EINLASS_CI") != "" {
			t.Fatalf("mounting a small file system: %v", err)
		}
		t.Skipf("this needs to mount a small file system, as root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	behind := app.Start(t, app.Text(http.StatusOK, "ok"))
	g := startGateOn(t, filepath.Join(disk, "receipts.db"), behind.Addr, "answer_within 2s\n retry_after 1s")
	want(t, "with room", g.send(push("before", `{"n":0}`)), http.StatusOK, "", false)

	filler := filepath.Join(disk, "filler")
	fill(t, filler)
	// Some writes still find room in pages that the store has already.
	var last event
	for n := 0; ; n++ {
		if n == 5000 {
			t.Fatal("the store did not run out of room")
		}
		a := g.send(push(fmt.Sprint("filling-", n), fmt.Sprintf(`{"n":%d}`, n)))
		if a.Status == http.StatusOK {
			continue
		}
		// Where the reservation still found room and the answer did not, the answer is kept for when there is some.
		if last = push(fmt.Sprint("filling-", n), fmt.Sprintf(`{"n":%d}`, n)); a.Code != "in_progress" {
			want(t, "full", a, http.StatusServiceUnavailable, "store_unavailable", false)
		}
		break
	}
	reached := len(behind.Requests())
	for range 3 {
		a := g.send(push("another", `{"n":"another"}`))
		want(t, "still full", a, http.StatusServiceUnavailable, "store_unavailable", false)
		if a.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	if now := len(behind.Requests()); now != reached {
		t.Errorf("the app was reached %d times while the store could not write", now-reached)
	}
	want(t, "a repeat needs no room", g.send(push("before", `{"n":0}`)), http.StatusOK, "", true)

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	a := g.until(last)
	want(t, "the event that found no room", a, http.StatusOK, "", a.Duplicate)
	want(t, "with room again", g.send(push("another", `{"n":"another"}`)), http.StatusOK, "", false)
}

// fill writes until there is no room left.
func fill(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for chunk := make([]byte, 4096); ; {
		if _, err := f.Write(chunk); err != nil {
			return
		}
	}
}
