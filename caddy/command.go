package caddy

import (
	"slices"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "webhook-gate",
		Short: "Tools for the webhook gate",
		Long: `Tools for the webhook gate: send signed test deliveries and see what the gate answers.

Every subcommand has --help with examples.`,
		CobraFunc: func(cmd *cobra.Command) {
			for _, build := range subcommands {
				cmd.AddCommand(build())
			}
		},
	})
}

var subcommands = []func() *cobra.Command{sendCommand}

// RegisterSubcommand adds a subcommand to `webhook-gate`. It is meant for init functions of packages that a
// binary adds to this one; see caddy/einlass for an example.
func RegisterSubcommand(build func() *cobra.Command) {
	subcommands = append(slices.Clip(subcommands), build)
}
