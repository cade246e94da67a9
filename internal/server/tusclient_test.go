package server_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestTusClient checks that the JavaScript client of the tus protocol works unmodified.
func TestTusClient(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	node := exec.CommandContext(t.Context(), "node", "resuming.mjs")
	node.Dir = clients
	node.Env = append(os.Environ(), "SOCLE_URL="+a.URL, "SOCLE_ID="+a.Project, "SOCLE_TOKEN="+a.Token,
		"SOCLE_CONTAINER="+a.Create("/containers", `{"name": "resumed"}`))

	if out, err := node.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
