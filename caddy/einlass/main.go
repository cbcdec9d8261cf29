// Command einlass is Caddy with its standard modules, the webhook gate and the gate's demonstration.
//
// Without the demonstration (and its SQLite), the same gate is built by
//
//	xcaddy build --with github.com/einlass/einlass
package main

import (
	_ "time/tzdata" // a container without zone files must still know time zones

	caddyserver "github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/einlass/einlass"
	"github.com/einlass/einlass/caddy"
	"github.com/einlass/einlass/integration/demo"
)

func init() {
	caddyserver.CustomBinaryName = "einlass"
	caddy.RegisterSubcommand(demo.Command)
}

func main() {
	caddycmd.Main()
}
