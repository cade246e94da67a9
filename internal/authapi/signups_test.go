package authapi_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/idp/idptest"
)

// own is the password of the owner of an address, where a stranger has [password].
const own = "another horse battery"

// TestFirstProof: a stranger signs up with the address or the number of its owner. The first one to
// prove it gets an account that has what came with the confirmed request only, on each path.
func TestFirstProof(t *testing.T) {
	t.Parallel()

	provider := idptest.New(t)
	p := newApp(t, func(s *rules.Settings) {
		withProvider(provider.URL)(s)
		s.SMS, s.WebAuthn = rules.SMS{SignIn: true, IntervalSeconds: 1}, rules.WebAuthn{}
	})

	signUp := func(email, secret, more string) string {
		t.Helper()

		p.post("/signup", `{"email":"`+email+`","password":"`+secret+`"`+more+`}`).want(200)
		return p.link(p.mail("confirmation", email))
	}
	hash := func(link string) string {
		u, _ := url.Parse(link)
		return u.Query().Get("token")
	}
	byHash := func(kind, hash string) { p.post("/verify", `{"type":"`+kind+`","token_hash":"`+hash+`"}`).want(200) }
	byCode := func(kind, email, mail string) {
		p.post("/verify", `{"type":"`+kind+`","email":"`+email+`","token":"`+p.code(p.mail(mail, email))+`"}`).want(200)
	}
	pkce, err := url.ParseQuery(strings.TrimPrefix(challengeOf(verifier), "&"))
	if err != nil {
		t.Fatal(err)
	}
	challenge := `,"code_challenge":"` + pkce.Get("code_challenge") + `","code_challenge_method":"s256"`

	for name, path := range map[string]struct {
		confirm  func(email string)
		password bool   // the confirmed request has one
		data     string // members of the metadata that the confirmed request has
	}{
		"link":      {func(e string) { p.open(signUp(e, own, `,"data":{"name":"owner"}`)) }, true, `"name":"owner"`},
		"tokenhash": {func(e string) { byHash("signup", hash(signUp(e, own, ""))) }, true, ""},
		"code": {func(e string) {
			p.post("/signup", `{"email":"`+e+`","password":"`+own+`"}`).want(200)
			byCode("signup", e, "confirmation")
		}, true, ""},
		"pkce": {func(e string) {
			code := p.open(signUp(e, own, challenge)).Query().Get("code")
			p.post("/token?grant_type=pkce", `{"auth_code":"`+code+`","code_verifier":"`+verifier+`"}`).want(200)
		}, true, ""},
		"resend": {func(e string) {
			signUp(e, own, "")
			p.post("/resend", `{"type":"signup","email":"`+e+`"}`).want(200)
			byCode("email", e, "confirmation")
		}, true, ""},
		"owner first, stranger again": {func(e string) {
			link := signUp(e, own, "")
			signUp(e, password, `,"data":{"evil":1}`)
			p.open(link)
		}, true, ""},
		"otp": {func(e string) {
			p.post("/otp", `{"email":"`+e+`","data":{"name":"owner"}}`).want(200)
			byCode("email", e, "magic_link")
		}, false, `"name":"owner"`},
		"magic link": {func(e string) {
			p.post("/otp", `{"email":"`+e+`"}`).want(200)
			p.open(p.link(p.mail("magic_link", e)))
		}, false, ""},
		"recovery": {func(e string) {
			p.post("/recover", `{"email":"`+e+`"}`).want(200)
			p.open(p.link(p.mail("recovery", e)))
		}, false, ""},
		"provider": {func(e string) {
			provider.Person(map[string]any{"sub": e, "email": e, "email_verified": true})
			p.idToken(provider.IDToken(nil)).want(200)
		}, false, ""},
		"invite": {func(e string) {
			p.send("POST", "/invite", p.secret, `{"email":"`+e+`","data":{"name":"owner"}}`).want(200)
			p.open(p.link(p.mail("invite", e)))
		}, false, `"name":"owner"`},
		"generated": {func(e string) {
			byHash("signup", p.send("POST", "/admin/generate_link", p.secret,
				`{"type":"signup","email":"`+e+`","password":"`+own+`"}`).want(200).text("hashed_token"))
		}, true, ""},
		"generated magic link": {func(e string) {
			byHash("magiclink", p.send("POST", "/admin/generate_link", p.secret,
				`{"type":"magiclink","email":"`+e+`"}`).want(200).text("hashed_token"))
		}, false, ""},
	} {
		email := strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), ",", "") + "@example.com"
		strangers := hash(signUp(email, password, `,"data":{"evil":1}`))
		path.confirm(email)

		login := func(secret string) *reply {
			return p.post("/token?grant_type=password", `{"email":"`+email+`","password":"`+secret+`"}`)
		}
		if got := login(password); got.status != 400 || got.text("code") != "invalid_credentials" {
			t.Errorf("%s: the stranger signs in: %d %s", name, got.status, got.raw)
		}
		if got := login(own); (got.status == 200) != path.password {
			t.Errorf("%s: the owner signs in: %v, want %v: %s", name, got.status == 200, path.password, got.raw)
		}

		user := p.send("GET", "/admin/users?filter="+email, p.secret, "").want(200).raw
		if strings.Contains(user, "evil") || !strings.Contains(user, path.data) {
			t.Errorf("%s: got the metadata of %s", name, user)
		}
		if got := p.post("/verify", `{"type":"signup","token_hash":"`+strangers+`"}`); got.status != 403 {
			t.Errorf("%s: the link of the stranger's request leads to %d", name, got.status)
		}
	}
}

// TestFirstProofOfAdministratorsUser: what an administrator has set stays, but for the password,
// which a stranger may have typed into a form of the application.
func TestFirstProofOfAdministratorsUser(t *testing.T) {
	t.Parallel()

	p := newApp(t, confirming)
	p.send("POST", "/admin/users", p.secret, `{"email":"ann@example.com","password":"`+password+`",
		"user_metadata":{"plan":"pro"},"app_metadata":{"team":"a"}}`).want(200)
	p.post("/otp", `{"email":"ann@example.com","data":{"name":"Ann"}}`).want(200)
	p.open(p.link(p.mail("magic_link", "ann@example.com")))

	user := p.send("GET", "/admin/users", p.secret, "").want(200).raw
	for _, want := range []string{`"plan":"pro"`, `"name":"Ann"`, `"team":"a"`} {
		if !strings.Contains(user, want) {
			t.Errorf("got %s, want %s", user, want)
		}
	}
	p.post("/token?grant_type=password", `{"email":"ann@example.com","password":"`+password+`"}`).
		fails(400, "invalid_credentials")
}

// TestAddressesAreCanonical: the spellings of an address are one user, and no others.
func TestAddressesAreCanonical(t *testing.T) {
	t.Parallel()

	p := newApp(t, autoconfirm)
	p.signUp("vic@example.com")
	p.signUp("ann@bücher.example")
	for _, email := range []string{"ｖic@example.com", "VIC@ｅxample.com", "vic＠example.com", "ann@xn--bcher-kva.example",
		"Ann@BÜCHER.example"} {
		p.post("/signup", `{"email":"`+email+`","password":"`+password+`"}`).fails(422, "user_already_exists")
		p.post("/token?grant_type=password", `{"email":"`+email+`","password":"`+password+`"}`).want(200)
	}

	p.signUp("ivy@example.com")
	p.post("/token?grant_type=password", `{"email":"İvy@example.com","password":"`+password+`"}`).
		fails(400, "invalid_credentials")
	p.signUp("İvy@example.com")

	// Rows of former releases.
	for _, email := range []string{"ｏld@example.com", "old@xn--bcher-kva.example"} {
		if _, err := p.project.EndUsers().Exec(t.Context(), `
			insert into auth.users (id, aud, role, email, encrypted_password, email_confirmed_at, created_at, updated_at)
			select gen_random_uuid(), aud, role, $1, encrypted_password, now(), now(), now()
			from auth.users where email = 'vic@example.com'`, email); err != nil {
			t.Fatal(err)
		}
		p.post("/token?grant_type=password", `{"email":"`+email+`","password":"`+password+`"}`).want(200)
		p.post("/signup", `{"email":"`+email+`","password":"`+password+`"}`).fails(422, "user_already_exists")
	}
}
