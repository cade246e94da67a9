package api_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"socle/internal/api/apitest"
	"socle/internal/platform"
	"socle/internal/token"
)

// again returns a client with a new session of the same user.
func again(t *testing.T, a *apitest.API) *apitest.API {
	t.Helper()

	other := *a
	other.Token = a.Nobody().Post("/users/login", logIn(a.Email, apitest.Password)).Want(200).Metadata("token").(string)

	return &other
}

// account returns the caller for an account operation of TestRights and adds the entity to names: a
// session or token of the target's owner. If the operation would end the visitor's session or
// account, the caller is a new session or user.
func account(t *testing.T, o operation, v visitor, names map[string]string, landlord *apitest.API) *apitest.API {
	t.Helper()

	who := v.api
	switch o.id {
	case "logout":
		if who.Token != "" {
			who = again(t, who)
		}
	case "getSecondFactor", "confirmSecondFactor", "deleteSecondFactor", "createSecondFactor":
		if who.Token != "" {
			who = who.SignUp("cautious")
			if o.id != "createSecondFactor" {
				names["code"] = begin(t, who).code(0)
			}
		}
	case "deleteAccount":
		if who.Token != "" {
			who = who.SignUp("leaver")
		}
	case "resetSecondFactor":
		if v.name == "administrator" && landlord != nil {
			careless := landlord.SignUp("careless")
			names["userUUID"] = careless.User
			begin(t, careless)
		}
	case "deleteUser":
		if landlord != nil {
			names["userUUID"] = landlord.SignUp("leaver").User
		}
	case "deleteToken":
		if landlord != nil {
			names["tokenUUID"] = landlord.Create("/tokens",
				`{"name": "to go `+names["n"]+`", "role_id": 4, "expires_at": "`+tomorrow()+`"}`)
		}
	case "deleteSession":
		if landlord != nil {
			again(t, landlord)
			names["sessionUUID"] = landlord.Get("/sessions?order=desc").Want(200).Get("0.uuid").(string)
		}
	case "resetPassword", "confirmEmail":
		purpose, name := platform.PasswordReset, "reset"
		if o.id == "confirmEmail" {
			purpose, name = platform.EmailChange, "confirm"
		}

		names[name] = linkTo(t, v.api.SignUp("linked"), purpose)
	case "refreshSession":
		if landlord == nil {
			landlord = v.api.SignUp("renewed")
		}

		names["refresh"] = landlord.Nobody().Post("/users/login", logIn(landlord.Email, apitest.Password)).Want(200).
			Metadata("refreshToken").(string)
	}

	return who
}

// mail is a mail in the log of the test server.
type mail struct{ Msg, To, Subject, Text string }

// mails returns the mails to an address, oldest first.
func mails(t *testing.T, a *apitest.API, to string) []mail {
	t.Helper()

	var all []mail
	for line := range strings.Lines(a.Log.String()) {
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

// mailed waits for the n-th mail to an address and returns it.
func mailed(t *testing.T, a *apitest.API, to string, n int) mail {
	t.Helper()

	until(t, fmt.Sprintf("%s has %d mails", to, n), func() bool { return len(mails(t, a, to)) >= n })

	all := mails(t, a, to)
	if len(all) != n {
		t.Fatalf("%s got %d mails, want %d: %+v", to, len(all), n, all)
	}

	return all[n-1]
}

var linked = regexp.MustCompile(`(?m)^(http://\S+)\?token=(\S+)$`)

// token returns the token in the link of the mail, which must point to page.
func (m mail) token(t *testing.T, a *apitest.API, page string) string {
	t.Helper()

	found := linked.FindStringSubmatch(m.Text)
	if found == nil || found[1] != a.URL+page {
		t.Fatalf("the mail has no link to %s:\n%s", page, m.Text)
	}

	return found[2]
}

// linkTo creates a link token for a user, bypassing the server.
func linkTo(t *testing.T, a *apitest.API, purpose string) string {
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
