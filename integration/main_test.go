package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// exe is the ready-made binary, built once for all tests here. They use it as a user does: as a process.
var exe string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "einlass-integration-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	exe = filepath.Join(dir, "einlass")
	build := exec.Command("go", "build", "-o", exe, "github.com/einlass/einlass/caddy/einlass")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building the gate:", err)
		return 1
	}
	return m.Run()
}
