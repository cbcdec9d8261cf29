package caddy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
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
			cmd.RunE = unknownSubcommand
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

// unknownSubcommand shows the help, and refuses what is not a subcommand.
func unknownSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	cmd.SilenceUsage = true
	var names []string
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	if near := nearest(args[0], names); near != "" {
		return fmt.Errorf("unknown subcommand %q of webhook-gate: did you mean `%s`?", args[0], near)
	}
	return fmt.Errorf("unknown subcommand %q of webhook-gate: it knows %s", args[0], strings.Join(names, ", "))
}

// examples puts the name of the running binary before each line of a command's examples.
func examples(lines ...string) string {
	name := or(caddy.CustomBinaryName, "caddy")
	return "  " + name + " " + strings.Join(lines, "\n  "+name+" ")
}
