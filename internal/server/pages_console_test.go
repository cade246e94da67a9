package server_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestConsoleInBrowser works in the console as a person does, from the first sign-up on, and opens
// every screen.
func TestConsoleInBrowser(t *testing.T) {
	t.Parallel()

	a := apitest.Empty(t)
	input, err := json.Marshal(map[string]string{"server": a.URL, "setupToken": a.Server.SetupToken})
	if err != nil {
		t.Fatal(err)
	}

	node := exec.CommandContext(t.Context(), "node", "console.mjs")
	node.Dir = clients
	node.Env = append(os.Environ(), "SOCLE_CHROMIUM="+chromium(t))
	node.Stdin = strings.NewReader(string(input) + "\n")

	if output, err := node.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
