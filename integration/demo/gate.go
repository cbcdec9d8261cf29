package demo

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	gatePath  = "/webhook"
	gateReady = 20 * time.Second // a cold start of the binary on a busy machine
)

// eventSchema is the contract between the sender and the counter.
const eventSchema = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"required": ["event_id", "kind", "value"],
	"additionalProperties": false,
	"properties": {
		"event_id": {"type": "string", "pattern": "^evt-[a-z0-9-]{1,40}$"},
		"kind": {"const": "increment"},
		"value": {"type": "integer", "minimum": 1, "maximum": 100}
	}
}
`

// caddyfile is what the gate runs with. The times are short, because the story waits for some of them; the
// lease is the shortest that the gate allows for its forward_timeout.
const caddyfile = `{
	admin off
	persist_config off
	auto_https off
	webhook_gate {
		store bolt "{dir}/receipts.db"
	}
}

http://{gate} {
	bind 127.0.0.1
	webhook_gate /webhook demo-webhook-v1 {secret} {
		contract "{dir}/event.schema.json"
		forward_timeout 2s
		lease 7s
		answer_within 5s
		wait 5s
		retry_after 1s
		in_doubt redeliver
	}
	reverse_proxy {app}
}
`

// gate is the gate's process, on one config and one store for all its lives.
type gate struct {
	exe     string
	dir     string
	address string // host:port
	process *process
}

// newGate writes the config for a gate in front of the app at appAddress.
func newGate(exe, dir, appAddress, secret string) (*gate, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	config := strings.NewReplacer("{dir}", filepath.ToSlash(dir), "{gate}", address, "{app}", appAddress, "{secret}", secret).
		Replace(caddyfile)
	for name, text := range map[string]string{"Caddyfile": config, "event.schema.json": eventSchema} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("write the gate's config: %w", err)
		}
	}
	return &gate{exe: exe, dir: dir, address: address}, nil
}

// freeAddress finds a port that is free now. Somebody else may take it before the gate does; then the gate does
// not start and says why.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String(), nil
}

// start starts the process and waits until it listens.
func (g *gate) start(ctx context.Context) error {
	cmd := exec.Command(g.exe, "run", "--config", filepath.Join(g.dir, "Caddyfile"), "--adapter", "caddyfile") //nolint:gosec,noctx // the binary that the user names; it is stopped by terminate or kill, not by ctx
	cmd.Dir = g.dir
	// Caddy's own data must not mix with that of a real server of this user.
	cmd.Env = append(os.Environ(),
		"XDG_DATA_HOME="+filepath.Join(g.dir, "data"), "XDG_CONFIG_HOME="+filepath.Join(g.dir, "config"))
	process, err := startProcess("the gate", cmd, filepath.Join(g.dir, "gate.log"))
	if err != nil {
		return err
	}
	g.process = process
	return await(ctx, "start the gate", gateReady, func(ctx context.Context) (bool, error) {
		if process.hasEnded() {
			return false, process.dead()
		}
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", g.address)
		if err != nil {
			return false, nil //nolint:nilerr // not yet
		}
		return true, conn.Close()
	})
}

// stop stops the gate if it runs.
func (g *gate) stop() error {
	if g.process == nil {
		return nil
	}
	return g.process.terminate()
}

func (g *gate) url() string { return "http://" + g.address + gatePath }
