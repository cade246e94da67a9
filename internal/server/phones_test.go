package server_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestPhonesByClient has users of an application sign in with phone numbers by supabase-js.
func TestPhonesByClient(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	s := titlesProject{API: a, t: t}
	a.Put("/projects/"+a.Project+"/auth-settings", `{"sms": {"sign_in": true, "factors": true, "test_numbers": {
		"491700000001": "111111", "491700000002": "222222", "491700000003": "333333"}}}`).Want(200)

	node := exec.CommandContext(t.Context(), "node", "phone.mjs")
	node.Dir, node.Env = clients, append(os.Environ(), "SOCLE_PROJECT="+a.URL+"/projects/"+a.Project,
		"SOCLE_PUBLISHABLE="+s.key("browser", "publishable"), "SOCLE_SECRET="+s.key("server", "secret"),
		"SOCLE_USER=unused")
	if out, err := node.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestPasskeysByClient has a user of an application sign in with a passkey by supabase-js, in
// Chromium with a virtual authenticator.
func TestPasskeysByClient(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	s := titlesProject{API: a, t: t}
	node := exec.CommandContext(t.Context(), "node", "passkeys.mjs")
	node.Dir, node.Env = clients, append(os.Environ(), "SOCLE_CHROMIUM="+chromium(t), "SOCLE_URL="+a.URL,
		"SOCLE_PROJECT="+a.Project, "SOCLE_TOKEN="+a.Token, "SOCLE_PUBLISHABLE="+s.key("browser", "publishable"),
		"SOCLE_SECRET="+s.key("server", "secret"))
	if out, err := node.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
