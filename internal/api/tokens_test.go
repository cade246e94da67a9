package api_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/lestrrat-go/jwx/v3/jwk"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestForgedTokens disconnects a server from its database. Every operation still refuses forged
// tokens, whatever else is wrong with the request, while a genuine one needs the database.
//
// One operation without a project, one with it in the path and one with it in the header refuse
// all forgeries, the others two each, in turn.
func TestForgedTokens(t *testing.T) {
	t.Parallel()

	a := apitest.Users(t)
	b := a.SignUp("another")
	user := a.Post("/users", `{"username": "user", "email": "user@example.com", "password": "`+apitest.Password+`"}`).
		Want(201)

	token := user.Metadata("token").(string)
	forged := forgeries(t, token, user.Get("uuid").(string), b.User, a.Get("/.well-known/jwks.json").Want(200).Body)
	forged["a refresh token"] = "Bearer " + user.Metadata("refreshToken").(string)
	garbage := map[string]string{}
	for _, p := range placeholder.FindAllStringSubmatch(
		"{projectUUID}{formUUID}{fieldUUID}{containerUUID}{fileUUID}{fullFileName}"+
			"{backupUUID}{tableUUID}{fullTableName}{schema}{functionName}{userUUID}", -1) {
		garbage[p[1]] = "%00"
	}

	parameters := map[string]string{"refresh": user.Metadata("refreshToken").(string), "email": b.Email,
		"reset":   createLink(t, b, account.PasswordReset),
		"confirm": createLink(t, b, account.EmailChange), "invitation": createLink(t, b, account.Invitation)}

	all := operations(t, a)
	unreachable(t, a)

	a = a.Anonymous()
	names := slices.Sorted(maps.Keys(forged))
	invalid := rotation(names)
	refuseAll := map[string]bool{"getAccount": true, "getProject": true, "listContainers": true}
	for _, o := range all {
		if rights[o.id].minRole == anyone {
			wantUnavailable(t, o.id, o.send(a, parameters, strings.ReplaceAll(rights[o.id].body, "{n}", "x")))
			continue
		}

		if o.bearer {
			o.send(a, garbage, "{").Want(401).Code("invalid_token")
		}

		turn := invalid(2)
		if refuseAll[o.id] {
			turn = names
			delete(refuseAll, o.id)
		}

		for _, name := range turn {
			forger := a.Request(o.method, placeholder.ReplaceAllString(o.path, "%00"), strings.NewReader("{"),
				"Authorization: "+forged[name])
			if r := a.Do(forger); r.Status != 401 || r.Header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s with %s: got %d, want 401\n%s", o.id, name, r.Status, r.Body)
			}
		}

		real := a.Anonymous()
		real.Token = token
		wantUnavailable(t, o.id, o.send(real, garbage, "{"))
	}

	if len(refuseAll) > 0 {
		t.Errorf("no operations: %v", refuseAll)
	}
}

// unreachable disconnects the server from the database until the test ends.
func unreachable(t *testing.T, a *apitest.API) {
	t.Helper()

	c, err := pgx.ParseConfig(string(a.Config.DatabaseURL))
	if err != nil {
		t.Fatal(err)
	}

	name := c.Database
	c.Database = "postgres"
	conn, err := pgx.ConnectConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}

	allow := func(ctx context.Context, connections bool) {
		if _, err := conn.Exec(ctx,
			fmt.Sprintf("alter database %s allow_connections %v", pgx.Identifier{name}.Sanitize(),
				connections)); err != nil {
			t.Error(err)
		}
	}

	t.Cleanup(func() {
		allow(context.Background(), true)
		conn.Close(context.Background())
	})

	allow(t.Context(), false)
	if _, err := conn.Exec(t.Context(),
		`select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = $1`, name); err != nil {
		t.Fatal(err)
	}
}

// forgeries returns invalid values of the Authorization header, derived from a genuine token of
// user.
func forgeries(t *testing.T, token, user, victim string, jwks []byte) map[string]string {
	t.Helper()

	parts := strings.Split(token, ".")
	head, body, signature := decode(t, parts[0]), decode(t, parts[1]), decode(t, parts[2])

	edit := func(in, old, new string) string {
		if !strings.Contains(in, old) {
			t.Fatalf("%s does not contain %s", in, old)
		}
		return encode(strings.Replace(in, old, new, 1))
	}

	flipped := signature[:len(signature)-1] + string(signature[len(signature)-1]^1)
	forged := map[string]string{
		"nothing": "", "a scheme alone": "Bearer", "a scheme and a space": "Bearer ",
		"another scheme": "Basic dXNlcjpwYXNz", "no scheme": token, "garbage": "Bearer garbage",
		"two segments": "Bearer " + parts[0] + "." + parts[1], "four segments": "Bearer " + token + ".x",
		"five segments": "Bearer a.b.c.d.e", "no base64": "Bearer ä.ö.ü",
		"two tokens": "Bearer " + token + ", Bearer " + token, "dots": "Bearer " + strings.Repeat(".", 30_000),
		"16 kB": "Bearer " + strings.Repeat("a", 16<<10), "no signature": "Bearer " + parts[0] + "." + parts[1] + ".",
		"a flipped signature": "Bearer " + parts[0] + "." + parts[1] + "." + encode(flipped),
		"another subject":     "Bearer " + parts[0] + "." + edit(body, user, victim) + "." + parts[2],
		"a role":              "Bearer " + parts[0] + "." + edit(body, "{", `{"role":1,"roleId":1,`) + "." + parts[2],
		"no expiry":           "Bearer " + parts[0] + "." + edit(body, `"exp"`, `"exq"`) + "." + parts[2],
	}

	for _, alg := range []string{"none", "None", "nOnE", ""} {
		unsigned := edit(head, `"ES256"`, `"`+alg+`"`) + "." + parts[1] + "."
		forged["alg "+alg], forged["alg "+alg+" with the signature"] = "Bearer "+unsigned, "Bearer "+unsigned+parts[2]
	}

	for name, key := range publicKeyForms(t, jwks) {
		input := edit(head, `"ES256"`, `"HS256"`) + "." + parts[1]
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(input))
		forged["HS256 with "+name] = "Bearer " + input + "." + encode(string(mac.Sum(nil)))
	}

	for name, kid := range map[string]string{"no kid": `"kie":"`, "a path as kid": `"kid":"../../dev/null`,
		"SQL as kid": `"kid":"' or 1=1 --`, "a large kid": `"kid":"` + strings.Repeat("k", 10<<10),
		"a key in the header": `"jwk":{"kty":"oct","k":"AA"},"kid":"`,
		"a jku":               `"jku":"http://127.0.0.1:1/","kid":"`} {
		forged[name] = "Bearer " + edit(head, `"kid":"`, kid) + "." + parts[1] + "." + parts[2]
	}

	return forged
}

// publicKeyForms returns the forms in which a server's public key is usually published, and
// careless choices of an HMAC secret.
func publicKeyForms(t *testing.T, jwks []byte) map[string][]byte {
	t.Helper()

	set, err := jwk.Parse(jwks)
	if err != nil {
		t.Fatal(err)
	}

	key, _ := set.Key(0)
	var public ecdsa.PublicKey
	if err := jwk.Export(key, &public); err != nil {
		t.Fatal(err)
	}

	der, err := x509.MarshalPKIXPublicKey(&public)
	if err != nil {
		t.Fatal(err)
	}

	point, err := public.Bytes()
	if err != nil {
		t.Fatal(err)
	}

	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	return map[string][]byte{"the key set": jwks, "DER": der, "PEM": text,
		"PEM without its last newline": text[:len(text)-1], "the point": point, "nothing": {},
		"secret": []byte("secret")}
}

func decode(t *testing.T, segment string) string {
	t.Helper()

	text, err := base64.RawURLEncoding.DecodeString(segment)
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}

func encode(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// TestTokensElsewhere checks that a token is accepted only in the Authorization header, and only
// once.
func TestTokensElsewhere(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	anonymous := a.Anonymous()
	anonymous.Get("/projects?access_token=" + a.Token).Want(401)
	anonymous.Get("/projects?token=" + a.Token).Want(401)
	anonymous.Send("GET", "/projects", "", "Cookie: token="+a.Token+"; Authorization=Bearer "+a.Token).Want(401)
	anonymous.Send("PUT", "/users/"+a.User, "token="+a.Token, "Content-Type: application/x-www-form-urlencoded").
		Want(401)
	anonymous.Send("GET", "/projects", "", "Proxy-Authorization: Bearer "+a.Token, "X-Authorization: Bearer "+a.Token).
		Want(401)

	twice := a.Request("GET", "/projects", nil)
	twice.Header.Add("Authorization", "Bearer "+a.Token)
	a.Do(twice).Want(401).Code("invalid_token")
	a.Send("GET", "/projects", "", "Authorization: bearer "+a.Token).Want(200) // the scheme is case-insensitive

	// Longer than the header limit.
	if got := sendRaw(t, a, "GET /projects HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+strings.Repeat(".", 100_000)+
		"\r\n\r\n"); got != 431 && got != 401 {
		t.Errorf("100000 dots: got %d, want 431", got)
	}
}

// sendRaw sends a request byte for byte and returns the status of the response.
func sendRaw(t *testing.T, a *apitest.API, request string) int {
	t.Helper()

	conn, err := net.Dial("tcp", strings.TrimPrefix(a.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}

	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}

	return res.StatusCode
}

// TestChangedRightsApply checks that the next request with an existing token sees changes in the
// database.
func TestChangedRightsApply(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	container := a.Create("/containers", `{"name": "reports"}`)
	for _, tt := range []struct {
		name, sql, code string
		list, change    int // the expected statuses of listProjects and updateContainer
	}{
		{"suspended", `update platform.users set status = 'suspended' where uuid = $1`, "invalid_token", 401, 401},
		{"session ended", `delete from platform.sessions where user_uuid = $1`, "invalid_token", 401, 401},
		{"session expired", `update platform.sessions set expires_at = now() where user_uuid = $1`,
			"invalid_token", 401, 401},
		{"made a viewer",
			`update platform.members set role = 5 where user_uuid = $1 and organization_uuid <> (select organization_uuid from platform.users where uuid = $1)`, "forbidden", 200, 401},
		{"removed", `delete from platform.members where user_uuid = $1 and role > 2`, "unknown_project", 200, 401},
	} {
		m := a.Member(4)
		m.Put("/containers/"+container, `{"description": "theirs"}`).Want(200)
		a.Exec(tt.sql, m.User)
		m.Get("/projects").Want(tt.list)
		m.Put("/containers/"+container, `{"description": "still theirs"}`).Want(tt.change).Code(tt.code)
	}

	suspended := a.Member(4)
	a.Exec(`update platform.users set status = 'suspended' where uuid = $1`, suspended.User)

	wantEqual(t,
		a.Anonymous().Post("/users/login", `{"email": "`+suspended.Email+`", "password": "`+apitest.Password+`"}`).
			Want(401),
		a.Anonymous().Post("/users/login", `{"email": "`+suspended.Email+`", "password": "not it at all"}`))

	a.Exec(`update platform.users set is_administrator = true where uuid = $1`, a.User)
	foreign := a.OtherUser()
	elsewhere := values(foreign.Get("/projects"), "uuid")[0]
	a.WithProject(elsewhere).Get("/tables").Want(200)
	a.Exec(`update platform.users set is_administrator = false where uuid = $1`, a.User)
	a.WithProject(elsewhere).Get("/tables").Want(401)

	if slices.Contains(values(a.Get("/projects"), "uuid"), elsewhere) {
		t.Error("a former administrator still sees all projects")
	}
}
