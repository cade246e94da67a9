package api_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/token"
)

// newSession returns a client with a new session of the same user.
func newSession(t *testing.T, a *apitest.API) *apitest.API {
	t.Helper()

	other := *a
	other.Token = a.Anonymous().Post("/users/login", loginBody(a.Email, apitest.Password)).Want(200).
		Metadata("token").(string)

	return &other
}

// accountCaller returns the caller for an account operation of TestRights and adds the entity to
// names: a session or token of the target's owner. If the operation would end the caller's session
// or account, it returns a new session or user.
func accountCaller(
	t *testing.T, o operation, v matrixCaller, names map[string]string, owner *apitest.API,
) *apitest.API {
	t.Helper()

	caller := v.api
	switch o.id {
	case "logout":
		if caller.Token != "" {
			caller = newSession(t, caller)
		}
	case "getSecondFactor", "confirmSecondFactor", "deleteSecondFactor", "createSecondFactor":
		if caller.Token != "" {
			caller = caller.SignUp("cautious")
			if o.id != "createSecondFactor" {
				names["code"] = createFactor(t, caller).code(0)
			}
		}
	case "deleteAccount":
		if caller.Token != "" {
			caller = caller.SignUp("leaver")
		}
	case "resetSecondFactor":
		if v.name == "administrator" && owner != nil {
			careless := owner.SignUp("careless")
			names["userUUID"] = careless.User
			createFactor(t, careless)
		}
	case "deleteUser":
		if owner != nil {
			names["userUUID"] = owner.SignUp("leaver").User
		}
	case "deleteToken":
		if owner != nil {
			names["tokenUUID"] = owner.Create("/tokens",
				`{"name": "to go `+names["n"]+`", "role_id": 4, "expires_at": "`+tomorrow()+`"}`)
		}
	case "deleteSession":
		if owner != nil {
			newSession(t, owner)
			names["sessionUUID"] = owner.Get("/sessions?order=desc").Want(200).Get("0.uuid").(string)
		}
	case "resetPassword", "confirmEmail":
		purpose, name := account.PasswordReset, "reset"
		if o.id == "confirmEmail" {
			purpose, name = account.EmailChange, "confirm"
		}

		names[name] = createLink(t, v.api.SignUp("linked"), purpose)
	case "refreshSession":
		if owner == nil {
			owner = v.api.SignUp("renewed")
		}

		names["refresh"] = owner.Anonymous().Post("/users/login", loginBody(owner.Email, apitest.Password)).Want(200).
			Metadata("refreshToken").(string)
	}

	return caller
}

// mail is a mail in the log of the test server.
type mail struct{ Msg, To, Subject, Text string }

// mails returns the mails to an address, oldest first.
func mails(t *testing.T, a *apitest.API, to string) []mail {
	t.Helper()

	var all []mail
	for line := range strings.Lines(a.Log.String()) {
		if !strings.Contains(line, `"mail"`) {
			continue
		}

		var m mail
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}

		if m.Msg == "mail" && m.To == to {
			all = append(all, m)
		}
	}

	return all
}

// waitForMail waits for the n-th mail to an address and returns it.
func waitForMail(t *testing.T, a *apitest.API, to string, n int) mail {
	t.Helper()

	until(t, fmt.Sprintf("%s has got %d mails", to, n), func() bool { return len(mails(t, a, to)) >= n })

	all := mails(t, a, to)
	if len(all) != n {
		t.Fatalf("%s: got %d mails, want %d: %+v", to, len(all), n, all)
	}

	return all[n-1]
}

var linked = regexp.MustCompile(`(?m)^(http://\S+)\?token=(\S+)$`)

// token returns the token in the link of the mail, which must point to page.
func (m mail) token(t *testing.T, a *apitest.API, page string) string {
	t.Helper()

	found := linked.FindStringSubmatch(m.Text)
	if found == nil || found[1] != a.URL+page {
		t.Fatalf("no link to %s in the mail:\n%s", page, m.Text)
	}

	return found[2]
}

// createLink creates a link token for a user, bypassing the server.
func createLink(t *testing.T, a *apitest.API, purpose string) string {
	t.Helper()

	secret, err := a.Config.LoadSecretKey()
	if err != nil {
		t.Fatal(err)
	}

	id := uuid.New()
	a.Exec(`insert into platform.links (uuid, purpose, user_uuid, email, expires_at) values ($1, $2, $3, $4, now() + interval '1 hour')`,
		id, purpose, a.User, "linked-"+id.String()+"@example.com")

	return token.Link(token.Derive(secret, "one-time links"), purpose, id)
}

// tomorrow returns a valid expiry time for a token.
func tomorrow() string { return time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339) }
