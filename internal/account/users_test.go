package account

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// signUp signs up a user from a network of their own.
func (i *install) signUp(c Caller, client Client, in SignUp) (SignedIn, error) {
	return i.SignUp(i.t.Context(), c, client, in)
}

func (i *install) closeSignUp() {
	i.exec(`insert into platform.settings (name, value, updated_by) values ('sign_up', 'false', gen_random_uuid())`)
}

// TestSignUp checks the validation of a sign-up, its conflicts, and that it opens a session.
func TestSignUp(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	in, err := i.signUp(Caller{}, at("home"),
		SignUp{Username: " ada ", Email: "Ada@Example.com ", Password: secret, Bio: "counts"})
	if err != nil {
		t.Fatal(err)
	}

	ada := in.User
	if ada.Username != "ada" || ada.Email != "Ada@Example.com" || ada.Bio != "counts" || ada.RoleID != Owner {
		t.Errorf("got user %v, want ada, the owner of an organization", ada)
	}
	if got := i.in(in, Scope{Organization: someUUID(ada.OrganizationUUID)}).Role; got != Owner {
		t.Errorf("got role %s in the user's organization, want %s", got, Owner)
	}

	_, err = i.signUp(Caller{}, at("home"), SignUp{Username: "a", Email: "nobody", Password: "short"})
	var fields []string
	for _, f := range fault.Of(err).Fields {
		fields = append(fields, f.Name)
	}
	if wanted := []string{"username", "email", "password"}; !slices.Equal(fields, wanted) {
		t.Errorf("got invalid fields %v, want %v", fields, wanted)
	}

	for field, taken := range map[string]SignUp{
		"username": {Username: "ADA", Email: "other@example.com", Password: secret},
		"email":    {Username: "other", Email: "ada@example.COM", Password: secret},
	} {
		_, err := i.signUp(Caller{}, at("home"), taken)
		want(t, err, fault.Conflict, "already_exists")
		if got := fault.Of(err).Fields; len(got) != 1 || got[0].Name != field {
			t.Errorf("got fields %v, want %s", got, field)
		}
	}
}

// TestClaim checks that the first user with access to the machine or with the set-up token, and
// nobody else, becomes the administrator.
func TestClaim(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	i.closeSignUp()
	local := at("home")
	local.Local = true

	for n, test := range []struct {
		client Client
		token  string
		want   string // code of the failure
	}{
		{at("home"), "", "sign_up_closed"},
		{at("home"), "guessed", "sign_up_closed"},
		{at("home"), i.SetupToken, ""},
		{local, "", "sign_up_closed"},
		{at("home"), i.SetupToken, "sign_up_closed"},
	} {
		name := "user-" + string(rune('a'+n))
		in, err := i.signUp(Caller{}, test.client,
			SignUp{Username: name, Email: name + "@example.com", Password: secret, SetupToken: test.token})
		want(t, err, fault.Invalid, test.want)
		if err == nil && !i.caller(in).Administrator {
			t.Error("the first user is no administrator")
		}
	}

	_, err := i.signUp(Caller{Administrator: true}, at("home"),
		SignUp{Username: "bob", Email: "bob@example.com", Password: secret})
	want(t, err, 0, "")
}

// TestCreateAdministrator checks that a further administrator needs no claim.
func TestCreateAdministrator(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	for _, name := range []string{"root", "second"} {
		u, err := i.Service.CreateAdministrator(t.Context(), name, name+"@example.com", secret)
		if err != nil || u.RoleID != Administrator {
			t.Errorf("got role %s, %v, want %s", u.RoleID, err, Administrator)
		}
	}

	if claimed, err := i.Claimed(t.Context()); err != nil || !claimed {
		t.Errorf("claimed: got %t, %v, want true", claimed, err)
	}
}

func TestCleanUsername(t *testing.T) {
	t.Parallel()

	for in, want := range map[string]string{
		" ada ": "ada", "Å-9": "Å-9", strings.Repeat("é", 100): strings.Repeat("é", 100), "_-_": "_-_",
		"ab": "", strings.Repeat("é", 101): "", "a b": "", "ada\n!": "", "ad\xff": "", "": "",
	} {
		if got, err := cleanUsername(in); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", in, got, err, want)
		}
	}
}

func TestCleanEmail(t *testing.T) {
	t.Parallel()

	for address, valid := range map[string]bool{
		"ada@example.com":                        true,
		"ada+tag@example.com":                    true,
		"ädä@exämple.com":                        true,
		"":                                       false,
		"ada":                                    false,
		"ada@":                                   false,
		"Ada <ada@example.com>":                  false,
		"ada@-example.com":                       false,
		"a da@example.com":                       false,
		"ada\u200b@example.com":                  false,
		"ada@example.com\r\nBcc: x@y":            false,
		strings.Repeat("a", 65) + "@b.com":       false,
		"a@" + strings.Repeat("b.", 126) + "com": false,
	} {
		got, err := cleanEmail(" " + address + " ")
		if (err == nil) != valid || (valid && got != address) {
			t.Errorf("%q: got %q, %v, want valid: %t", address, got, err, valid)
		}
	}
}

// TestUpdateUser checks who may update a user, and what a new password and a new address entail.
func TestUpdateUser(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ada, bob := i.user("ada"), i.user("bob")
	mine, other := i.login(ada), i.login(ada)
	me := i.caller(mine)
	name, email, password := "countess", "countess@example.com", "another horse battery"

	_, err := i.UpdateUser(t.Context(), me, bob.UUID, UserUpdate{Username: &name})
	want(t, err, fault.Unauthenticated, "not_yourself")
	_, err = i.UpdateUser(t.Context(), me, uuid.New(), UserUpdate{Username: &name})
	want(t, err, fault.Unauthenticated, "not_yourself")
	_, err = i.UpdateUser(t.Context(), Caller{User: bob.UUID, Administrator: true}, uuid.New(), UserUpdate{})
	want(t, err, fault.Unauthenticated, "not_yourself")
	_, err = i.UpdateUser(t.Context(), me, ada.UUID, UserUpdate{})
	want(t, err, fault.Unprocessable, "nothing_to_change")
	_, err = i.UpdateUser(t.Context(), me, ada.UUID, UserUpdate{Email: &bob.Email})
	want(t, err, fault.Conflict, "already_exists")

	// The password is checked against the new name.
	_, err = i.UpdateUser(t.Context(), me, ada.UUID, UserUpdate{Username: &name, Password: &name})
	want(t, err, fault.Unprocessable, "too_obvious")

	link, err := i.CreateLink(t.Context(),
		NewLink{Purpose: PasswordReset, User: someUUID(ada.UUID), TTL: passwordResetTTL})
	if err != nil {
		t.Fatal(err)
	}

	takeJobs[Mail](i)
	changed, err := i.UpdateUser(t.Context(), me, ada.UUID,
		UserUpdate{Username: &name, Email: &email, Password: &password})
	if err != nil || changed.Username != name || changed.Email != email {
		t.Fatalf("got %v, %v, want %s, %s", changed, err, name, email)
	}

	var templates []string
	for _, m := range takeJobs[Mail](i) {
		if m.To != ada.Email {
			t.Errorf("got a mail to %s, want to the previous address, %s", m.To, ada.Email)
		}

		templates = append(templates, m.Template)
	}
	if wanted := []string{"email-changed", "password-changed"}; !slices.Equal(templates, wanted) {
		t.Errorf("got mails %v, want %v", templates, wanted)
	}

	i.caller(mine) // the session of the change continues
	_, err = i.Authenticate(t.Context(), other.Tokens.Token, Scope{})
	want(t, err, fault.Unauthenticated, "invalid_token")
	if url, err := i.LinkURL(t.Context(), link.UUID); err != nil || url != "" {
		t.Errorf("link after the change: got %q, %v, want none", url, err)
	}
}

// TestDeleteUser checks the refusals of a user's deletion, and that it deletes organizations
// without other members.
func TestDeleteUser(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	root, err := i.Service.CreateAdministrator(t.Context(), "root", "root@example.com", secret)
	if err != nil {
		t.Fatal(err)
	}

	ada, bob := i.user("ada"), i.user("bob")
	admin := Caller{User: root.UUID, Administrator: true}
	_, err = i.DeleteUser(t.Context(), actor(bob), ada.UUID)
	want(t, err, fault.Forbidden, "forbidden")
	_, err = i.DeleteUser(t.Context(), admin, root.UUID)
	want(t, err, fault.Forbidden, "forbidden")
	_, err = i.DeleteUser(t.Context(), admin, uuid.New())
	want(t, err, fault.NotFound, "not_found")
	_, err = i.DeleteAccount(t.Context(), at("home"), root.UUID, Proof{Password: secret})
	want(t, err, fault.Conflict, "last_administrator")
	_, err = i.DeleteAccount(t.Context(), at("home"), ada.UUID, Proof{Password: "wrong"})
	want(t, err, fault.Unprocessable, "wrong_password")

	i.join(ada.OrganizationUUID, bob, Developer)
	_, err = i.DeleteUser(t.Context(), admin, ada.UUID)
	want(t, err, fault.Conflict, "last_owner")
	ownerless := fault.Of(err).Extra["organizations"].([]uuid.UUID)
	if !slices.Equal(ownerless, []uuid.UUID{ada.OrganizationUUID}) {
		t.Errorf("got organizations %v, want %s", ownerless, ada.OrganizationUUID)
	}

	// Bob's own organization goes with him, Ada's stays.
	deleted, err := i.DeleteAccount(t.Context(), at("home"), bob.UUID, Proof{Password: secret})
	if err != nil || deleted.UUID != bob.UUID {
		t.Fatalf("got %v, %v, want %s", deleted.UUID, err, bob.UUID)
	}
	if m := i.takeMail(); m.Template != "account-deleted" || m.To != bob.Email {
		t.Errorf("got mail %v, want account-deleted to %s", m, bob.Email)
	}
	if n := i.exec(`select from platform.organizations where uuid = any($1)`,
		[]uuid.UUID{ada.OrganizationUUID, bob.OrganizationUUID}); n != 1 {
		t.Errorf("got %d organizations, want 1", n)
	}
}

// TestUpdateStanding checks that the last active administrator remains one.
func TestUpdateStanding(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	root, err := i.Service.CreateAdministrator(t.Context(), "root", "root@example.com", secret)
	if err != nil {
		t.Fatal(err)
	}

	suspended, yes, no := "suspended", true, false
	update := func(id uuid.UUID, s Standing) error {
		_, err := i.UpdateStanding(t.Context(), id, s)
		return err
	}
	want(t, update(root.UUID, Standing{Status: &suspended}), fault.Conflict, "last_administrator")
	want(t, update(root.UUID, Standing{IsAdministrator: &no}), fault.Conflict, "last_administrator")
	want(t, update(root.UUID, Standing{}), fault.Unprocessable, "nothing_to_change")
	want(t, update(uuid.New(), Standing{}), fault.NotFound, "not_found")
	want(t, update(uuid.New(), Standing{Status: &suspended}), fault.NotFound, "not_found")
	want(t, update(i.user("ada").UUID, Standing{IsAdministrator: &yes}), 0, "")
	want(t, update(root.UUID, Standing{Status: &suspended}), 0, "")
}

func TestListUsers(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ada := i.user("ada")
	i.user("bob")
	for search, wanted := range map[string]int64{"": 2, "ADA": 1, "@example": 2, ada.UUID.String(): 1, "%": 0} {
		_, total, err := i.ListUsers(t.Context(), UserFilter{Search: search},
			pg.Page{Number: 1, Limit: 10, Sort: "username"})
		if err != nil || total != wanted {
			t.Errorf("search %q: got %d users, %v, want %d", search, total, err, wanted)
		}
	}
}

// TestAudit checks that a log-in and a sign-up are audited as actions of their users.
func TestAudit(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	ctx := audit.Begin(t.Context(), []byte("key"), audit.Entry{Action: "login"})
	ada := i.user("ada")
	if _, err := i.Login(ctx, at("home"), Credentials{Email: ada.Email, Password: secret}); err != nil {
		t.Fatal(err)
	}

	if err := i.Store.ChainAudit(t.Context(), []byte("key")); err != nil {
		t.Fatal(err)
	}

	entries, total, err := i.Store.Audit(t.Context(), audit.Filter{Actor: ada.UUID.String()},
		pg.Page{Number: 1, Limit: 10, Sort: "seq"})
	if err != nil || total != 1 || entries[0].Action != "login" {
		t.Errorf("got entries %v, %v, want one log-in", entries, err)
	}
}
