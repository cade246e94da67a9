package server_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/enduser/rules"
)

// TestSignInWithProviderInBrowser has people sign in with an identity provider, oidc-provider, by
// supabase-js in Chromium. The script asks for what a browser can't do: to configure the project,
// and to begin a sign-in in the past.
func TestSignInWithProviderInBrowser(t *testing.T) {
	t.Parallel()

	s := titlesProject{API: apitest.Shared(t), t: t}
	node := exec.CommandContext(t.Context(), "node", "oauth.mjs")
	node.Dir = clients
	node.Env = append(os.Environ(), "SOCLE_CHROMIUM="+chromium(t), "SOCLE_PROJECT="+s.URL+"/projects/"+s.Project,
		"SOCLE_PUBLISHABLE="+s.key("browser", "publishable"))

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

	for questions := bufio.NewScanner(out); questions.Scan(); {
		var asked struct{ Issuer, Site string }
		if err := json.Unmarshal(questions.Bytes(), &asked); err != nil {
			t.Fatalf("%v: %s", err, questions.Bytes())
		}

		answer := map[string]string{}
		if asked.Issuer != "" {
			s.useProvider(asked.Issuer, asked.Site)
		} else {
			answer = s.lateSignIn()
		}

		if err := json.NewEncoder(in).Encode(answer); err != nil {
			t.Fatal(err)
		}
	}

	if err := node.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &problems)
	}
}

// useProvider configures an identity provider for the application at an address.
func (s *titlesProject) useProvider(issuer, site string) {
	s.t.Helper()

	body, err := json.Marshal(map[string]any{"site_url": site, "confirm_email": false,
		"providers": map[string]rules.Provider{"custom:test": {Enabled: true, ClientID: "socle-test", URL: issuer}},
		"secrets":   map[string]string{"providers.custom:test": "secret of the client"}})
	if err != nil {
		s.t.Fatal(err)
	}

	s.Put("/projects/"+s.Project+"/auth-settings", string(body)).Want(200)
}

// lateSignIn returns the address at the provider and the cookie of a sign-in whose time is over.
func (s *titlesProject) lateSignIn() map[string]string {
	s.t.Helper()

	d, err := s.Server.Services().EndUsers.Open(s.t.Context(), uuid.MustParse(s.Project))
	if err != nil {
		s.t.Fatal(err)
	}

	f, err := d.NewFlow("custom:test", "", enduser.Challenge{})
	if err != nil {
		s.t.Fatal(err)
	}

	f.Ends = time.Now().Add(-time.Second)
	departure, err := d.Depart(s.t.Context(), f, nil, enduser.Client{})
	if err != nil {
		s.t.Fatal(err)
	}

	return map[string]string{"url": departure.URL, "name": departure.Flow.BindingName(), "value": departure.Binding}
}
