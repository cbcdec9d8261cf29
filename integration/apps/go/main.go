// Command go is a counter behind Einlass. It shows what an app does at each level of the contract, in Go with SQLite:
//
//	L0  nothing: a 2xx is "done", any other answer "not done"
//	L1  says what became of the event, in its answer and by a callback: confirm.go
//	L2  keeps one row per event in the transaction of the effect, and answers a known event from it: store.go
//	L3  answers the outcome question from that row: outcome in app.go. With -fence also for good: fence.go
//
// The effect happens once from L2 on. Run it, and kill it whenever you like:
//
//	go run ./integration/apps/go -listen 127.0.0.1:3000 -db counter.db
//	curl -H 'Webhook-Gate-Source: me' -H 'Webhook-Gate-Event: 1' -d '{"amount":5}' http://127.0.0.1:3000/hook
//	curl http://127.0.0.1:3000/counter
//
// Whoever reaches /webhook-outcome can ask for any event, so the site in front passes on only /hook:
// `reverse_proxy /hook 127.0.0.1:3000`. faults.go is for the tests; an app of your own does not need it.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:3000", "address; only the gate should reach it")
	path := flag.String("db", "counter.db", "SQLite file")
	level := flag.Int("level", 3, "of the contract, 0 to 3")
	fence := flag.Bool("fence", false, "refuse attempts for good that the gate has given up; needs level 3")
	flag.Parse()
	if flag.NArg() > 0 || *level < 0 || *level > 3 || *fence && *level < 3 {
		log.Fatal("usage: -listen ADDR -db FILE -level 0..3 [-fence with level 3]")
	}
	store, err := openStore(*path, *level >= 2)
	if err != nil {
		log.Fatal(err)
	}
	a := &app{level: *level, fence: *fence, store: store, client: newClient()}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening on", listener.Addr())
	// No shutdown: at whatever moment the process ends, the rows tell what was done. Idle connections live longer here
	// than in Caddy (2 minutes), so that no attempt meets one that is just being closed.
	server := &http.Server{Handler: withFaults(a), ReadTimeout: 10 * time.Second, IdleTimeout: 5 * time.Minute}
	log.Fatal(server.Serve(listener))
}
