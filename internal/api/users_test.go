package api_test

import (
	"encoding/json"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/config"
)

// userBody returns the body that creates a user with a username. edits adds or replaces members.
func userBody(name string, edits map[string]any) string {
	body := map[string]any{"username": name, "email": name + "@example.com", "password": apitest.Password}
	maps.Copy(body, edits)

	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}

	return string(text)
}

// accounts returns the stored data of all users as text.
func accounts(t *testing.T, a *apitest.API) string {
	t.Helper()

	return apitest.Value[string](a, `select jsonb_pretty(jsonb_build_object(
		'users', (select jsonb_agg(u order by uuid) from platform.users u),
		'organizations', (select jsonb_agg(o order by uuid) from platform.organizations o),
		'members', (select jsonb_agg(m order by user_uuid, organization_uuid) from platform.members m),
		'sessions', (select jsonb_agg(s order by uuid) from platform.sessions s)))`)
}

// unchanged fails the test if the stored data of users differs from before.
func unchanged(t *testing.T, a *apitest.API, before string) {
	t.Helper()

	if diff := cmp.Diff(before, accounts(t, a)); diff != "" {
		t.Errorf("a refused request changed (-before +after):\n%s", diff)
	}
}

func TestCreateUser(t *testing.T) {
	t.Parallel()

	a := apitest.User(t).Anonymous().WithProject("")
	r := a.Post("/users",
		`{"username": " Ada_L-1 ", "email": " Ada@Example.com ", "password": "`+apitest.Password+`", "bio": "first"}`).
		Want(201)

	content := r.Get("").(map[string]any)
	for _, member := range []string{"uuid", "organizationUuid"} {
		if id, err := uuid.Parse(content[member].(string)); err != nil || id.Version() != 7 ||
			id.String() != content[member] {
			t.Errorf("%s is %v, want a UUID of version 7 in lower case", member, content[member])
		}

		delete(content, member)
	}

	for _, member := range []string{"createdAt", "updatedAt"} {
		if _, err := time.Parse("2006-01-02T15:04:05.000000Z", content[member].(string)); err != nil {
			t.Errorf("%s: %v", member, err)
		}
		delete(content, member)
	}

	want := map[string]any{
		"username": "Ada_L-1", "email": "Ada@Example.com", "bio": "first",
		"status": "active", "roleId": json.Number("2"),
	}
	if diff := cmp.Diff(want, content); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}

	signedIn := func(r *apitest.Reply) {
		t.Helper()

		if got, want := r.Header.Get("Authorization"), "Bearer "+r.Metadata("token").(string); got != want {
			t.Errorf("got Authorization %q, want %q", got, want)
		}
		if got := r.Header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("Cache-Control is %q, want no-store", got)
		}

		a.Send("GET", "/projects", "", "Authorization: "+r.Header.Get("Authorization")).Want(200)
	}

	signedIn(r)
	signedIn(a.Post("/users/login", `{"email": "ada@example.com", "password": "`+apitest.Password+`"}`).Want(200))
	a.Post("/users", userBody("plain", nil)).Want(201).Content("bio", "")
}

func TestCreateUserRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.User(t).Anonymous().WithProject("")
	a.Post("/users", userBody("Ada", map[string]any{"email": "straße@example.com"})).Want(201)
	before := accounts(t, a)

	for _, tt := range []struct {
		name, field, code string
		value             any
	}{
		{"too short", "username", "invalid_format", "ab"},
		{"too long", "username", "invalid_format", strings.Repeat("a", 101)},
		{"blank", "username", "invalid_format", "    "},
		{"space within", "username", "invalid_format", "a b c"},
		{"dots", "username", "invalid_format", "a.b.c"},
		{"markup", "username", "invalid_format", "<img onerror>"},
		{"SQL", "username", "invalid_format", "x'; drop table users --"},
		{"line break", "username", "invalid_format", "abc\r\nSet-Cookie: x"},
		{"bidi", "username", "invalid_format", "ab\u202ecd"},
		{"zero width", "username", "invalid_format", "ab\u200bcd"},
		{"NUL", "username", "invalid_format", "abc\x00"},
		{"twin by case", "username", "already_exists", "aDA"},
		{"twin by space", "username", "already_exists", " Ada\t"},
		{"twin by width", "username", "already_exists", "Ａｄａ"},
		{"twin by NFKC", "username", "already_exists", "ªda"},
		{"empty", "email", "invalid_format", ""},
		{"no @", "email", "invalid_format", "ada.example.com"},
		{"two @", "email", "invalid_format", "a@b@example.com"},
		{"wide @", "email", "invalid_format", "a＠b@example.com"},
		{"spaces in a ligature", "email", "invalid_format", "ﷺ@example.com"},
		{"quoted @", "email", "invalid_format", `"a@b"@example.com`},
		{"nothing before", "email", "invalid_format", "@example.com"},
		{"nothing behind", "email", "invalid_format", "ada@"},
		{"trailing dot", "email", "invalid_format", "ada@example.com."},
		{"display name", "email", "invalid_format", "Ada <new@example.com>"},
		{"two addresses", "email", "invalid_format", "new@example.com, other@example.com"},
		{"address literal", "email", "invalid_format", "new@[127.0.0.1]"},
		{"space within", "email", "invalid_format", "a da@example.com"},
		{"line break", "email", "invalid_format", "new@example.com\r\nBcc: all@example.com"},
		{"zero width", "email", "invalid_format", "stra\u200bße@example.com"},
		{"NUL", "email", "invalid_format", "new\x00@example.com"},
		{"long", "email", "too_long", strings.Repeat("a", 288) + "@example.com"},
		{"long before the @", "email", "invalid_format", strings.Repeat("a", 65) + "@example.com"},
		{"long in bytes", "email", "invalid_format", "a@" + strings.Repeat("ä", 150) + ".com"},
		{"twin by case", "email", "already_exists", "STRASSE@Example.COM"},
		{"twin by space", "email", "already_exists", "\u3000straße@example.com "},
		{"twin by width", "email", "already_exists", "ｓtraße@ｅxample.com"},
		{"7 characters", "password", "too_short", "1b3d5f7"},
		{"common", "password", "too_common", "password1"},
		{"common by case", "password", "too_common", "PassWord1"},
		{"the address", "password", "too_obvious", "New@Example.com"},
		{"the name", "password", "too_obvious", "newcomer"},
		{"1025 bytes", "password", "too_long", strings.Repeat("x", 1025)},
		{"15 kilobytes", "password", "too_long", strings.Repeat("x", 15_000)},
		{"NUL", "password", "invalid_format", "long enough\x00"},
		{"501 characters", "bio", "too_long", strings.Repeat("ä", 501)},
		{"NUL", "bio", "invalid_format", "a\x00b"},
	} {
		edits := map[string]any{"username": "newcomer", "email": "new@example.com", tt.field: tt.value}
		r := a.Post("/users", userBody("", edits))
		if r.Status != 400 {
			t.Errorf("%s: %s: got %d, want 400\n%s", tt.field, tt.name, r.Status, r.Body)
			continue
		}

		if r.Field(tt.field); r.Metadata("fields.0.code") != tt.code {
			t.Errorf("%s: %s: got code %v, want %s", tt.field, tt.name, r.Metadata("fields.0.code"), tt.code)
		}
	}

	for _, field := range []string{"username", "email", "password", "bio", "setup_token"} {
		for _, value := range []string{
			"1", "-1.5", "1e400", "18446744073709551616", strings.Repeat("9", 400), "true", `["x"]`,
			`{"$ne": null}`, "null",
		} {
			a.Post("/users", userBody("newcomer", map[string]any{field: json.RawMessage(value)})).Want(400).Field(field)
		}
	}

	a.Post("/users", `{}`).Want(400).Field("username", "email", "password")
	a.Post("/users", `{"username": "x", "email": "x", "password": "x"}`).Want(400).
		Field("username", "email", "password")

	unchanged(t, a, before)
}

// TestUserBodies checks that ambiguous bodies are refused, and that unknown members are ignored.
func TestUserBodies(t *testing.T) {
	t.Parallel()

	a := apitest.User(t)
	anonymous := a.Anonymous().WithProject("")
	before := accounts(t, a)
	rest := `"username": "newcomer", "email": "new@example.com", "password": "` + apitest.Password + `"}`
	for _, path := range []string{"POST /users", "POST /users/login", "PUT /users/" + a.User} {
		method, path, _ := strings.Cut(path, " ")
		for _, body := range []string{
			"", "null", "[]", `"x"`, "1", "{", `{"bio": "x"`, "{" + rest + "x", "{" + rest + "{}",
			`{"bio": "x", "bio": "y", ` + rest, `{"bio": "x", "\u0062io": "y", ` + rest,
			`{"email": "a@example.com", ` + rest, "{'bio': 'x'}", `{"bio": NaN}`, "\ufeff{" + rest,
			"{\"bio\": \"\xff\", " + rest, `{"bio": "\ud800", ` + rest, `{"bio": "\udc00\ud800", ` + rest, "bio=x",
			`{"bio": "` + strings.Repeat("x", 1<<20) + `"}`, `{"bio": ` + strings.Repeat("[", 10_001),
		} {
			if r := a.Send(method, path, body); r.Status != 400 || r.Get("") != "null" {
				t.Errorf("%s %s %.60q: got %d, want 400", method, path, body, r.Status)
			}
		}

		a.Send(method, path, "{"+rest, "Content-Type: text/plain").Want(400).Field("Content-Type")
		a.Send(method, path, "{"+rest, "Content-Encoding: gzip").Want(400).Field("Content-Encoding")
	}

	unchanged(t, a, before)

	const extra = `"uuid": "` + apitest.MissingUUID +
		`", "roleId": 1, "role_id": 1, "ROLEID": 1, "\u0072oleId2": 1, "\u0052oleId": 1, "status": "suspended", "organizationUuid": "` +
		apitest.MissingUUID + `", "organization_uuid": "` + apitest.MissingUUID +
		`", "createdAt": "1970-01-01T00:00:00Z", "isAdministrator": true, "is_administrator": true, "BIO": "no", "Claim": true, `
	r := anonymous.Post("/users", "{"+extra+rest).Want(201).Content("roleId", 2).Content("status", "active").
		Content("bio", "")

	created := r.Get("").(map[string]any)
	for _, member := range []string{"uuid", "organizationUuid"} {
		if created[member] == apitest.MissingUUID {
			t.Errorf("%s was read from the body", member)
		}
	}

	updated := a.Anonymous()
	updated.Token = r.Metadata("token").(string)
	got := updated.Put("/users/"+created["uuid"].(string), "{"+extra+`"bio": "yes"}`).Want(200).Get("").(map[string]any)
	created["bio"], created["updatedAt"] = "yes", got["updatedAt"]
	if diff := cmp.Diff(created, got); diff != "" {
		t.Errorf("update (-want +got):\n%s", diff)
	}

	for i, bio := range []string{
		"😀 \u202eabc\u202c \u200b", "line\r\nbreak\t", `"quotes" \ 'and' {}`, "e\u0301", strings.Repeat("😀", 500),
	} {
		anonymous.Post("/users", userBody("bio-"+string(rune('a'+i)), map[string]any{"bio": bio})).Want(201).
			Content("bio", bio)
		updated.Put("/users/"+created["uuid"].(string), `{"bio": `+quoted(bio)+`}`).Want(200).Content("bio", bio)
	}
}

func TestPasswords(t *testing.T) {
	t.Parallel()

	a := apitest.User(t, func(c *config.Config) { c.PasswordMin = 12 }).Anonymous().WithProject("")
	long := strings.Repeat("x", 72)
	for name, tt := range map[string]struct{ password, other string }{
		"after72":  {long + "12345678", long + "87654321"},
		"hundreds": {strings.Repeat("päß ", 170), strings.Repeat("päß ", 169)},
		"spaces":   {"  twelve signs  ", "  twelve signs"},
		"case":     {"Twelve Signs!", "twelve signs!"},
		"width":    {"ｔwelve signs!", "twelve signs!"},
	} {
		a.Post("/users", userBody(name, map[string]any{"password": tt.password})).Want(201)
		login := func(password string) *apitest.Reply {
			return a.Post("/users/login", `{"email": "`+name+`@example.com", "password": `+quoted(password)+`}`)
		}

		login(tt.password).Want(200)
		login(tt.other).Want(401)
	}

	a.Post("/users", userBody("short", map[string]any{"password": "eleven sign"})).Want(400).Field("password")
}

// TestFirstUser checks that one of many concurrent first sign-ups becomes the administrator.
func TestFirstUser(t *testing.T) {
	t.Parallel()

	a := apitest.Empty(t)
	var administrators, users atomic.Int32
	got := concurrently(12, func(i int) *apitest.Reply {
		r := a.Post("/users", userBody("user-"+decimal(uint32(i)), nil))
		if r.Status != 201 {
			return r
		}

		switch string(r.Get("roleId").(json.Number)) {
		case "1":
			administrators.Add(1)
		case "2":
			users.Add(1)
		}

		return r
	})
	if got[201] != 12 || administrators.Load() != 1 || int(users.Load()) != got[201]-1 {
		t.Errorf(
			"got statuses %v, %d administrators and %d users, want one administrator, and a user for every other 201",
			got, administrators.Load(), users.Load(),
		)
	}

	if n := apitest.Value[int](a, `select count(*) from platform.users where is_administrator`); n != 1 {
		t.Errorf("got %d administrators, want 1", n)
	}
}

// TestSetupToken checks that a first sign-up through a proxy or a web page needs the setup token.
func TestSetupToken(t *testing.T) {
	t.Parallel()

	a := apitest.Empty(t, func(c *config.Config) { c.TrustedProxies = trusted })
	a.Post("/console/session/refresh", "{}").Want(401).Code("no_administrator")

	for name, header := range map[string]string{"far": "X-Forwarded-For: 203.0.113.9",
		"near": "X-Forwarded-For: 127.0.0.1", "proxied": "Via: 1.1 proxy",
		"page": "Origin: https://example.com", "rebound": "Origin: " + a.URL} {
		a.Send("POST", "/users", userBody(name, nil), header).Want(201).Content("roleId", 2)
	}

	for i, token := range []string{"", "guessed", strings.ToUpper(a.Server.SetupToken), a.Server.SetupToken[1:]} {
		a.Send("POST", "/users", userBody("guess-"+decimal(uint32(i)), map[string]any{"setup_token": token}),
			"X-Forwarded-For: 203.0.113.9").Want(201).Content("roleId", 2)
	}

	claim := map[string]any{"setup_token": a.Server.SetupToken}
	a.Send("POST", "/users", userBody("claimer", claim), "X-Forwarded-For: 203.0.113.9").Want(201).Content("roleId", 1)
	a.Send("POST", "/users", userBody("second", claim), "X-Forwarded-For: 203.0.113.9").Want(201).Content("roleId", 2)
	a.Post("/users", userBody("local", nil)).Want(201).Content("roleId", 2)
	a.Post("/console/session/refresh", "{}").Want(401).Code("invalid_token")
}

// TestSignUpClosed checks that without sign-up only the first user and users created by an
// administrator exist.
func TestSignUpClosed(t *testing.T) {
	t.Parallel()

	a := apitest.Empty(t, func(c *config.Config) { c.SignUp = false })
	before := accounts(t, a)
	a.Send("POST", "/users", userBody("stranger", nil), "X-Forwarded-For: 203.0.113.9").Want(400).Code("sign_up_closed")
	unchanged(t, a, before)

	administrator := a.Anonymous()
	administrator.Token = a.Post("/users", userBody("first", nil)).Want(201).Content("roleId", 1).
		Metadata("token").(string)

	before = accounts(t, a)
	a.Post("/users", userBody("second", nil)).Want(400).Code("sign_up_closed").Field()
	a.Post("/users", userBody("second", map[string]any{"setup_token": a.Server.SetupToken})).Want(400).
		Code("sign_up_closed")
	a.Post("/users", userBody("first", nil)).Want(400).Code("sign_up_closed") // not already_exists
	unchanged(t, a, before)

	user := administrator.Anonymous()
	user.Token = administrator.Post("/users", userBody("second", nil)).Want(201).Content("roleId", 2).
		Metadata("token").(string)

	user.Post("/users", userBody("third", nil)).Want(400).Code("sign_up_closed")
	a.Send("POST", "/users", userBody("third", nil), "Authorization: Bearer forged").Want(400).Code("sign_up_closed")
}

// TestSignUpsConcurrently checks that one of many concurrent equal sign-ups creates a user.
func TestSignUpsConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.User(t).Anonymous().WithProject("")
	before := apitest.Value[int](a, `select count(*) from platform.organizations`)
	wantCounts(t, concurrently(4, func(int) *apitest.Reply { return a.Post("/users", userBody("equal", nil)) }),
		map[int]int{201: 1, 400: 3})

	wantCounts(t, concurrently(4, func(i int) *apitest.Reply {
		return a.Post("/users", userBody("name-"+decimal(uint32(i)), map[string]any{"email": "one@example.com"}))
	}), map[int]int{201: 1, 400: 3})

	if got := apitest.Value[int](a, `select count(*) from platform.organizations`); got != before+2 {
		t.Errorf("got %d organizations, want 2", got-before)
	}
}
