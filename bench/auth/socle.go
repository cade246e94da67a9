package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/bench/socle"
	"github.com/socle-dev/socle/internal/token"
)

const password = "correct horse battery"

// bench is a running Socle with a project and its users.
type bench struct {
	*socle.Instance
	parameters
	project    string
	token, key string // token of the platform's user, key of the project
	refreshKey []byte // by which refresh tokens are computed
}

// parameters are those of the bare server.
type parameters struct {
	Database socle.Database
	Accounts []account
}

// account is a user of the project with a session.
type account struct {
	Email, Token string
	Session      uuid.UUID
	generation   *atomic.Uint32 // generation of the valid refresh token
}

// setUp creates a project and signs up its users.
func (b *bench) setUp() error {
	var user struct{ Metadata struct{ Token string } }
	err := b.send(&user, "POST", "/users", "",
		fmt.Sprintf(`{"username":"bench","email":"bench@example.com","password":%q}`, password))
	if err != nil {
		return err
	}
	b.token = user.Metadata.Token

	var project struct{ Content struct{ UUID string } }
	if err := b.send(&project, "POST", "/projects", b.token, `{"name":"bench"}`); err != nil {
		return err
	}
	b.project = "/projects/" + project.Content.UUID

	if err := b.send(nil, "PUT", b.project+"/auth-settings", b.token, `{"confirm_email":false}`); err != nil {
		return err
	}

	var key struct{ Metadata struct{ Key string } }
	if err := b.send(&key, "POST", b.project+"/keys", b.token, `{"name":"bench","kind":"publishable"}`); err != nil {
		return err
	}
	b.key = key.Metadata.Key

	for i := range b.Clients {
		a := account{Email: fmt.Sprintf("user%d@example.com", i), generation: &atomic.Uint32{}}
		var session struct {
			AccessToken string `json:"access_token"`
		}
		if err := b.send(&session, "POST", b.project+"/auth/v1/signup", b.key, credentials(a)); err != nil {
			return err
		}

		a.Token = session.AccessToken
		claims, err := base64.RawURLEncoding.DecodeString(strings.Split(a.Token, ".")[1])
		if err != nil {
			return err
		}

		var claimed struct {
			Session uuid.UUID `json:"session_id"`
		}
		if err := json.Unmarshal(claims, &claimed); err != nil {
			return err
		}

		a.Session = claimed.Session
		b.Accounts = append(b.Accounts, a)
	}

	return nil
}

func credentials(a account) string {
	return fmt.Sprintf(`{"email":%q,"password":%q}`, a.Email, password)
}

// tables are those that the bare server changes, with the indexes of Socle's.
const tables = `
	create schema bench;
	create table bench.users (like auth.users including all);
	create table bench.sessions (like auth.sessions including all);
	insert into bench.users (id, email) select id, email from auth.users;
	insert into bench.sessions select * from auth.sessions;`

// connect finds the database of the bare server, and the key of refresh tokens.
func (b *bench) connect(ctx context.Context) error {
	_, projects, err := b.OpenDatabase(ctx)
	if err != nil {
		return err
	}

	project := projects.Open(uuid.MustParse(strings.TrimPrefix(b.project, "/projects/")))
	b.refreshKey = project.EndUserKey("refresh tokens")

	pool := project.Trusted()
	b.Database = socle.DatabaseOf(pool)

	_, err = pool.Exec(ctx, tables, pgx.QueryExecModeSimpleProtocol)
	return err
}

func (b *bench) getUser(n int) (*http.Request, error) {
	return b.request("GET", b.project+"/auth/v1/user", b.Accounts[n%b.Clients].Token, "")
}

func (b *bench) refresh(n int) (*http.Request, error) {
	a := b.Accounts[n%b.Clients]
	text := token.Refresh(b.refreshKey, a.Session, a.generation.Add(1)-1)

	return b.request("POST", b.project+"/auth/v1/token?grant_type=refresh_token", b.key,
		fmt.Sprintf(`{"refresh_token":%q}`, text))
}

func (b *bench) login(n int) (*http.Request, error) {
	return b.request("POST", b.project+"/auth/v1/token?grant_type=password", b.key,
		credentials(b.Accounts[n%b.Clients]))
}

func (b *bench) request(method, path, key, body string) (*http.Request, error) {
	q, err := http.NewRequest(method, b.URL+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}

	q.Header.Set("Content-Type", "application/json")
	if key != "" {
		q.Header.Set("Authorization", "Bearer "+key)
	}

	return q, nil
}

// send sends a request and parses the response into v, unless that is nil.
func (b *bench) send(v any, method, path, key, body string) error {
	q, err := b.request(method, path, key, body)
	if err != nil {
		return err
	}

	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer res.Body.Close()

	text, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err
	case res.StatusCode >= 300:
		return fmt.Errorf("%s %s: %s", method, path, text)
	case v == nil:
		return nil
	}

	return json.Unmarshal(text, v)
}
