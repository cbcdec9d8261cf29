package demo

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary play the processes of the demonstration.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "app": // as `demo app`
			command := Command()
			command.SetArgs(os.Args[1:])
			exit(command.Execute())
		case "run": // as a gate: run --config <file> --adapter caddyfile
			exit(runNaiveGate(os.Args[3]))
		case "ignore": // ends only when it is killed
			signal.Ignore(syscall.SIGTERM)
			fmt.Println("ready")
			time.Sleep(time.Minute)
			exit(nil)
		case "fail":
			exit(fmt.Errorf("no such thing as a free lunch"))
		}
	}
	os.Exit(m.Run())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runNaiveGate forwards everything: what the app would see without a gate.
func runNaiveGate(config string) error {
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	app := regexp.MustCompile(`(?m)^\treverse_proxy (\S+)`).FindSubmatch(text)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: string(app[1])})
	server := &http.Server{Addr: gateAddress(text), Handler: proxy, ReadHeaderTimeout: time.Second}
	return server.ListenAndServe()
}

// self is this binary, playing the part.
func self(t *testing.T, part ...string) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{exe}, part...)
}

// gateAddress is where a config makes the gate listen.
func gateAddress(config []byte) string {
	return string(regexp.MustCompile(`(?m)^http://(\S+) \{`).FindSubmatch(config)[1])
}
