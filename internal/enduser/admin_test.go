package enduser

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
)

func pointer[T any](v T) *T { return &v }

// TestCreateUser checks the members of a new user.
func TestCreateUser(t *testing.T) {
	t.Parallel()

	u := newUsers(t, nil)
	id := uuid.New()
	email, free, phone := pointer("Ann@Example.com"), pointer("x@example.com"), pointer("+49 1701")
	got, err := u.CreateUser(t.Context(), AdminUpdate{ID: id, Email: email, Phone: phone, PhoneConfirm: pointer(true),
		UserMetadata: json.RawMessage(`{"name":"Ann"}`), AppMetadata: json.RawMessage(`{"plan":"pro"}`)}, home)
	ok(t, err)
	if got.ID != id || got.Email != "ann@example.com" || got.EmailConfirmedAt != nil || got.Phone != "491701" ||
		got.PhoneConfirmedAt == nil || got.Role != "authenticated" ||
		string(got.AppMetadata) != `{"plan": "pro", "provider": "email", "providers": ["email", "phone"]}` {
		t.Errorf("got %+v", got)
	}

	for name, tt := range map[string]struct {
		in   AdminUpdate
		code string
	}{
		"nothing":       {AdminUpdate{}, "validation_failed"},
		"taken email":   {AdminUpdate{Email: email}, "email_exists"},
		"taken phone":   {AdminUpdate{Phone: phone}, "phone_exists"},
		"taken id":      {AdminUpdate{ID: id, Email: free}, "user_already_exists"},
		"email":         {AdminUpdate{Email: pointer("x")}, "validation_failed"},
		"phone":         {AdminUpdate{Phone: pointer("x")}, "validation_failed"},
		"hash":          {AdminUpdate{Email: free, PasswordHash: pointer("plain")}, "validation_failed"},
		"weak password": {AdminUpdate{Email: free, Password: pointer("short")}, "weak_password"},
		"ban":           {AdminUpdate{Email: free, BanDuration: pointer("soon")}, "validation_failed"},
		"past ban":      {AdminUpdate{Email: free, BanDuration: pointer("-1h")}, "validation_failed"},
		"long role":     {AdminUpdate{Email: free, Role: pointer(strings.Repeat("x", 64))}, "validation_failed"},
		"metadata":      {AdminUpdate{Email: free, UserMetadata: json.RawMessage(`[]`)}, "validation_failed"},
	} {
		if _, err := u.CreateUser(t.Context(), tt.in, home); codeOf(err) != tt.code {
			t.Errorf("%s: got %v, want %s", name, describe(err), tt.code)
		}
	}
}

// TestUpdateUser checks what each change by an administrator leaves and ends.
func TestUpdateUser(t *testing.T) {
	t.Parallel()

	u := newUsers(t, nil)
	ann := u.user("ann@example.com")
	update := func(in AdminUpdate) (User, error) { return u.UpdateUser(t.Context(), ann.ID, in, home) }
	who := u.session(ann).identity()

	got, err := update(AdminUpdate{Email: pointer("anna@example.com"), Role: pointer("editor"),
		UserMetadata: json.RawMessage(`{"a":1,"b":null}`)})
	ok(t, err)
	if got.Email != "anna@example.com" || got.EmailConfirmedAt == nil || got.Role != "editor" ||
		string(got.UserMetadata) != `{"a": 1}` || got.PasswordReference != ann.PasswordReference {
		t.Errorf("got %+v", got)
	}
	got, err = update(AdminUpdate{Role: pointer(""), Phone: pointer("+491701"), PhoneConfirm: pointer(true)})
	ok(t, err)
	if got.Email != "anna@example.com" || got.Role != "editor" || got.Phone != "491701" ||
		got.PhoneConfirmedAt == nil ||
		string(got.AppMetadata) != `{"provider": "email", "providers": ["email", "phone"]}` {
		t.Errorf("got %+v", got)
	}

	got, err = update(AdminUpdate{BanDuration: pointer("24h")})
	ok(t, err)
	if !got.IsBanned() {
		t.Error("the user is not banned")
	}
	_, err = u.Login(t.Context(), "anna@example.com", secret, home)
	want(t, err, fault.Invalid, "user_banned")
	_, err = update(AdminUpdate{BanDuration: pointer("none")})
	ok(t, err)
	_, err = u.Authenticate(t.Context(), who) // through all of these
	ok(t, err)

	ok(t, u.Recover(t.Context(), LinkRequest{Email: "anna@example.com"}, home))
	u.mail("recovery")
	_, err = update(AdminUpdate{Password: pointer("another " + secret)})
	ok(t, err)
	if n := u.count(`select count(*)::int from auth.one_time_tokens`); n != 0 {
		t.Errorf("got %d tokens after a new password, want none", n)
	}
	_, err = u.Authenticate(t.Context(), who)
	want(t, err, fault.Forbidden, "session_not_found")

	u.user("ben@example.com")
	_, err = update(AdminUpdate{Email: pointer("ben@example.com")})
	want(t, err, fault.Unprocessable, "email_exists")
	_, err = update(AdminUpdate{Role: pointer(strings.Repeat("x", 64))})
	want(t, err, fault.Invalid, "validation_failed")
	_, err = u.UpdateUser(t.Context(), uuid.New(), AdminUpdate{}, home)
	want(t, err, fault.NotFound, "user_not_found")
}

// TestDeleteUser: a soft deletion keeps the row and frees the address and the number.
func TestDeleteUser(t *testing.T) {
	t.Parallel()

	u := newUsers(t, withPhones)
	ann := u.user("ann@example.com")
	who := u.session(ann).identity()
	_, err := u.EnrollFactor(t.Context(), who, "mine", "")
	ok(t, err)
	_, err = u.UpdateUser(t.Context(), ann.ID, AdminUpdate{Phone: pointer("491701")}, home)
	ok(t, err)

	_, err = u.DeleteUser(t.Context(), ann.ID, true, home)
	ok(t, err)
	got, err := u.GetUser(t.Context(), ann.ID)
	ok(t, err)
	if got.DeletedAt == nil || got.PasswordReference != "" || got.Phone != "" || string(got.UserMetadata) != "{}" {
		t.Errorf("got %+v, want no trace but the row", got)
	}
	for _, table := range []string{"sessions", "identities", "mfa_factors", "one_time_tokens"} {
		if n := u.count(`select count(*)::int from auth.` + table); n != 0 {
			t.Errorf("got %d rows of %s, want none", n, table)
		}
	}
	_, err = u.Login(t.Context(), "ann@example.com", secret, home)
	want(t, err, fault.Invalid, "invalid_credentials")
	_, err = u.CreateUser(t.Context(), AdminUpdate{Email: pointer("ann@example.com"), Phone: pointer("491701")}, home)
	ok(t, err)

	_, err = u.DeleteUser(t.Context(), ann.ID, false, home)
	ok(t, err)
	_, err = u.GetUser(t.Context(), ann.ID)
	want(t, err, fault.NotFound, "user_not_found")
}
