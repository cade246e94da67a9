package authapi_test

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/enduser/message"
	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/idp/idptest"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
)

// trusted is the certificate of a server that the tests trust: that of package httptest.
var trusted tls.Certificate

func TestMain(m *testing.M) {
	web := httptest.NewTLSServer(nil)
	trusted = web.TLS.Certificates[0]
	web.Close()

	// Certificates of the system are read once, when the first one is verified.
	folder, err := os.MkdirTemp("", "socle-authapi-")
	if err != nil {
		log.Fatal(err)
	}
	roots := filepath.Join(folder, "roots.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: trusted.Certificate[0]})
	if err := errors.Join(os.WriteFile(roots, text, 0o600), os.Setenv("SSL_CERT_FILE", roots)); err != nil {
		log.Fatal(err)
	}

	pgtest.Run(m, func() error { return errors.Join(apitest.StopShared(), os.RemoveAll(folder)) })
}

const password = "correct horse battery"

// app is an application of a project: its clients have the publishable key, its server the secret
// key.
type app struct {
	*apitest.API
	t                   *testing.T
	project             *projectdb.Project
	publishable, secret string
}

// newApp returns the application of a new project on the shared server.
func newApp(t *testing.T, change func(*rules.Settings)) *app {
	t.Helper()
	return appOf(t, apitest.Shared(t), change)
}

// appOf returns the application of the project of a client.
func appOf(t *testing.T, a *apitest.API, change func(*rules.Settings)) *app {
	t.Helper()

	p := &app{API: a, t: t, project: a.Server.Projects().Open(uuid.MustParse(a.Project))}
	for kind, to := range map[string]*string{"publishable": &p.publishable, "secret": &p.secret} {
		*to = a.Post("/projects/"+a.Project+"/keys", `{"name":"`+kind+`","kind":"`+kind+`"}`).Want(201).
			Metadata("key").(string)
	}

	p.configure(change)
	return p
}

// configure changes the settings of the project's end users, and waits for no cache: it runs before
// the first request, or uses settings that the next requests don't need at once.
func (p *app) configure(change func(*rules.Settings)) {
	p.t.Helper()

	if change == nil {
		return
	}

	_, err := p.Server.Services().EndUsers.UpdateConfig(p.t.Context(), p.project.UUID, uuid.MustParse(p.User),
		func(c *rules.Config) {
			change(&c.Settings)
			for name := range c.Providers {
				c.Secrets["providers."+name] = idptest.Secret
			}
			delete(c.Secrets, "providers.google") // has none
		})
	if err != nil {
		p.t.Fatal(err)
	}
}

// autoconfirm opens sign-ups without a mail.
func autoconfirm(s *rules.Settings) { s.ConfirmEmail, s.MailIntervalSeconds = false, 0 }

// reply is a response.
type reply struct {
	t       *testing.T
	request string
	status  int
	header  http.Header
	body    map[string]any
	raw     string
}

// send sends a request with a key or token.
func (p *app) send(method, path, key, body string, headers ...string) *reply {
	p.t.Helper()
	return p.sendTo(method, p.URL+"/projects/"+p.Project+"/auth/v1"+path, key, body, headers...)
}

// sendTo is send to any address.
func (p *app) sendTo(method, address, key, body string, headers ...string) *reply {
	p.t.Helper()

	r, err := http.NewRequestWithContext(p.t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}

	r.Header.Set("X-Supabase-Api-Version", "2024-01-01")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}

	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()

	text, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}

	got := &reply{t: p.t, request: method + " " + r.URL.RequestURI() + " " + body, status: res.StatusCode,
		header: res.Header,
		raw:    string(text)}
	if bytes.HasPrefix(text, []byte("{")) {
		if err := json.Unmarshal(text, &got.body); err != nil {
			p.t.Fatalf("%s: %v: %s", got.request, err, text)
		}
	}

	return got
}

// post sends a request with the publishable key.
func (p *app) post(path, body string) *reply {
	p.t.Helper()
	return p.send("POST", path, p.publishable, body)
}

func (r *reply) want(status int) *reply {
	r.t.Helper()

	if r.status != status {
		r.t.Fatalf("%s: got status %d, want %d: %s", r.request, r.status, status, r.raw)
	}

	return r
}

// fails checks the status and the code of an error.
func (r *reply) fails(status int, code string) *reply {
	r.t.Helper()

	if r.want(status); r.text("code") != code || r.header.Get("X-Supabase-Api-Version") != "2024-01-01" ||
		r.text("message") == "" {
		r.t.Errorf("%s: got %s, want the code %s", r.request, r.raw, code)
	}

	return r
}

// text returns a member by its path, "" if it is absent.
func (r *reply) text(path string) string {
	var value any = r.body
	for _, name := range strings.Split(path, ".") {
		members, _ := value.(map[string]any)
		value = members[name]
	}

	text, _ := value.(string)
	return text
}

func (r *reply) equal(path, want string) *reply {
	r.t.Helper()

	if got := r.text(path); got != want {
		r.t.Errorf("%s: got %s %q, want %q: %s", r.request, path, got, want, r.raw)
	}

	return r
}

// signUp creates a user and returns the session.
func (p *app) signUp(email string) *reply {
	p.t.Helper()
	return p.post("/signup", `{"email":"`+email+`","password":"`+password+`"}`).want(200)
}

// mail waits for the newest mail of a kind to an address, and removes it.
func (p *app) mail(kind, to string) message.Mail {
	p.t.Helper()

	var found []message.Mail
	apitest.Until(p.t, kind+" to "+to, func() bool {
		var err error
		found, err = pg.All[message.Mail](p.t.Context(), p.project.EndUsers(), `
			delete from auth.mails where kind = @kind and recipient = @to
			returning id as uuid, recipient, kind, subject, html, body as text, error, created_at`,
			pgx.StrictNamedArgs{"kind": kind, "to": to})
		if err != nil {
			p.t.Fatal(err)
		}

		return len(found) > 0
	})

	return found[len(found)-1]
}

// link returns the path and query behind /auth/v1 of the link in a mail.
func (p *app) link(m message.Mail) string {
	p.t.Helper()

	_, after, ok := strings.Cut(m.Text, "/auth/v1/verify")
	if !ok {
		p.t.Fatalf("the mail has no link: %s", m.Text)
	}

	query, _, _ := strings.Cut(after, "\n")
	return "/verify" + query
}

// code returns the six digits in a mail.
func (p *app) code(m message.Mail) string {
	p.t.Helper()

	_, after, ok := strings.Cut(m.Text, "code: ")
	if !ok || len(after) < 6 {
		p.t.Fatalf("the mail has no code: %s", m.Text)
	}

	return after[:6]
}

// exec runs SQL as the owner of the project.
func (p *app) exec(sql string) {
	p.t.Helper()

	if _, err := p.project.Owner().Exec(p.t.Context(), sql); err != nil {
		p.t.Fatalf("%s: %v", sql, err)
	}
}

// claim returns a claim of an access token.
func claim(t *testing.T, token, name string) any {
	t.Helper()

	var claims map[string]any
	segment, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil || json.Unmarshal(segment, &claims) != nil {
		t.Fatalf("claims %s: %v", segment, err)
	}

	return claims[name]
}
