package server_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/config"
)

// TestPagesInBrowser follows the links of mails in Chromium, without scripts.
func TestPagesInBrowser(t *testing.T) {
	t.Parallel()

	runWithMails(t, "pages.mjs")
}

// TestFormsInBrowser answers a form on its page, in a frame and by a form of another site.
func TestFormsInBrowser(t *testing.T) {
	t.Parallel()

	runWithMails(t, "forms.mjs")
}

// runWithMails runs a script of the clients against a new server that sends its mails to the mail
// server of the script. The script prints the port of its mail server, and then reads the URL of
// the server.
func runWithMails(t *testing.T, script string) {
	t.Helper()

	node := exec.CommandContext(t.Context(), "node", script)
	node.Dir = clients
	node.Env = append(os.Environ(), "SOCLE_CHROMIUM="+chromium(t))

	var problems bytes.Buffer
	node.Stderr = &problems
	in, err := node.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}

	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	if err := node.Start(); err != nil {
		t.Fatal(err)
	}

	lines := bufio.NewReader(out)
	var mails struct{ Port int }
	if err := json.NewDecoder(lines).Decode(&mails); err != nil {
		t.Fatalf("%v\n%s", err, &problems)
	}

	a := apitest.Empty(t, func(c *config.Config) {
		c.SMTPURL, c.MailFrom = config.Secret(fmt.Sprintf("smtp://127.0.0.1:%d", mails.Port)), "noreply@example.com"
	})
	fmt.Fprintln(in, a.URL)

	if err := node.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &problems)
	}
}

// chromium returns the path of a browser. Chromium's headless shell runs the same engine without
// the windows of a desktop, whose processes take most of the time of a short test.
func chromium(t *testing.T) string {
	t.Helper()

	for _, name := range []string{"chromium-headless-shell", "chromium"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}

	t.Fatal("Chromium is missing: make chromium")
	return ""
}
