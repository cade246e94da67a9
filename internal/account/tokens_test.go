package account

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
)

// TestTokens checks that a personal access token has the lesser rights of itself and its user, in
// its projects only, until it expires or is revoked.
func TestTokens(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ada, bob := i.user("ada"), i.user("bob")
	project, other := i.project(ada.OrganizationUUID, "p"), i.project(ada.OrganizationUUID, "q")
	create := func(u User, n NewToken) (Token, string, error) {
		if n.ExpiresAt.IsZero() {
			n.ExpiresAt = time.Now().Add(time.Hour)
		}
		return i.CreateToken(t.Context(), u.UUID, n)
	}

	_, _, err := create(ada, NewToken{Name: " "})
	want(t, err, fault.Unprocessable, "required")
	_, _, err = create(ada, NewToken{Name: "t", Role: Viewer, ExpiresAt: time.Now().Add(-time.Second)})
	want(t, err, fault.Unprocessable, "out_of_range")
	_, _, err = create(ada, NewToken{Name: "t", Role: Viewer, ExpiresAt: time.Now().Add(maxTokenTTL + time.Minute)})
	want(t, err, fault.Unprocessable, "out_of_range")
	_, _, err = create(bob, NewToken{Name: "t", Role: Viewer, Projects: []uuid.UUID{project}})
	want(t, err, fault.Unprocessable, "not_found")

	created, text, err := create(ada, NewToken{Name: "t", Role: Developer, Projects: []uuid.UUID{project}})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = create(ada, NewToken{Name: "t", Role: Developer})
	want(t, err, fault.Conflict, "already_exists")

	c, err := i.Authenticate(t.Context(), text, Scope{Project: someUUID(project)})
	if err != nil || !c.ByToken || c.Role != Developer || c.User != ada.UUID {
		t.Errorf("got %v, %v, want a developer by token", c, err)
	}

	c, err = i.Authenticate(t.Context(), text, Scope{Project: someUUID(other)})
	if err != nil || c.Project.Valid || c.Role != 0 {
		t.Errorf("another project: got %v, %v, want no role", c, err)
	}
	if n := i.exec(`select from platform.tokens where last_used_at is not null`); n != 1 {
		t.Error("the use of the token is not recorded")
	}

	_, err = i.Authenticate(t.Context(), text[:len(text)-1]+"_", Scope{})
	want(t, err, fault.Unauthenticated, "invalid_token")
	i.exec(`update platform.tokens set expires_at = now()`)
	_, err = i.Authenticate(t.Context(), text, Scope{})
	want(t, err, fault.Unauthenticated, "token_expired")

	_, err = i.DeleteToken(t.Context(), bob.UUID, created.UUID)
	want(t, err, fault.NotFound, "not_found")
	_, err = i.DeleteToken(t.Context(), ada.UUID, created.UUID)
	want(t, err, 0, "")
	_, err = i.Authenticate(t.Context(), text, Scope{})
	want(t, err, fault.Unauthenticated, "invalid_token")
}

// TestAdministratorsToken checks that a token of a lower role does not administrate.
func TestAdministratorsToken(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	root, err := i.Service.CreateAdministrator(t.Context(), "root", "root@example.com", secret)
	if err != nil {
		t.Fatal(err)
	}

	for role, wanted := range map[Role]bool{Administrator: true, Owner: false} {
		_, text, err := i.CreateToken(t.Context(), root.UUID,
			NewToken{Name: role.String(), Role: role, ExpiresAt: time.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}

		if c, err := i.Authenticate(t.Context(), text, Scope{}); err != nil || c.Administrator != wanted {
			t.Errorf("token of role %s: got administrator %t, %v, want %t", role, c.Administrator, err, wanted)
		}
	}
}
