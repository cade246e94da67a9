package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/bench/socle"
)

const password = "correct horse battery"

// bench is a running Socle with a project, its bucket and its users.
type bench struct {
	*socle.Instance
	parameters
	project    string // path of the project
	files      string // path of the bucket's files in the platform API
	token, key string // token of the platform's user, key of the project
	users      []user
}

// parameters are those of the bare server.
type parameters struct {
	Database           socle.Database
	Folder             string
	Project, Container string // UUIDs
}

// user is a user of the application. The folder with its ID is its own.
type user struct{ id, token string }

// policies give each user a folder.
const policies = `
	create policy own on storage.objects for all to authenticated
		using (bucket_id = 'letters' and (storage.foldername(name))[1] = (select auth.uid()::text))
		with check (bucket_id = 'letters' and (storage.foldername(name))[1] = (select auth.uid()::text))`

// setUp creates a project with a bucket and its policies, and users with objects.
func (b *bench) setUp() error {
	var account struct{ Metadata struct{ Token string } }
	if err := b.send(&account, "POST", "/users", "",
		fmt.Sprintf(`{"username":"bench","email":"bench@example.com","password":%q}`, password)); err != nil {
		return err
	}
	b.token = account.Metadata.Token

	var made struct {
		Content  struct{ UUID string }
		Metadata struct{ Key string }
	}
	if err := b.send(&made, "POST", "/projects", b.token, `{"name":"bench"}`); err != nil {
		return err
	}
	b.Project, b.project = made.Content.UUID, "/projects/"+made.Content.UUID

	if err := b.send(&made, "POST", "/containers", b.token, `{"name":"letters"}`); err != nil {
		return err
	}
	b.Container, b.files = made.Content.UUID, "/files/"+b.Project+"/"+made.Content.UUID+"/"

	if err := b.send(&made, "POST", b.project+"/keys", b.token, `{"name":"bench","kind":"publishable"}`); err != nil {
		return err
	}
	b.key = made.Metadata.Key

	query, err := json.Marshal(map[string]any{"query": policies, "read_only": false})
	if err != nil {
		return err
	}
	if err := b.send(nil, "POST", "/sql", b.token, string(query)); err != nil {
		return err
	}
	if err := b.send(nil, "PUT", b.project+"/auth-settings", b.token, `{"confirm_email":false}`); err != nil {
		return err
	}

	return b.addUsers()
}

func (b *bench) addUsers() error {
	content := bytes.Repeat([]byte("letter\n"), large/7)
	for i := range b.Clients {
		var session struct {
			AccessToken string `json:"access_token"`
			User        struct{ ID string }
		}
		if err := b.send(&session, "POST", b.project+"/auth/v1/signup", b.key,
			fmt.Sprintf(`{"email":"user%d@example.com","password":%q}`, i, password)); err != nil {
			return err
		}

		u := user{session.User.ID, session.AccessToken}
		b.users = append(b.users, u)
		for n := range listed {
			text := content
			if n > 0 {
				text = text[:100]
			}

			if err := b.send(nil, "POST", b.project+"/storage/v1/object/letters/"+u.object(n), u.token,
				string(text)); err != nil {
				return err
			}
		}
	}

	return nil
}

// tables are those that the bare server changes, with the indexes of Socle's.
const tables = `
	create schema bench;
	create table bench.files (like storage.files including all);`

// connect finds the database and makes the folder of the bare server.
func (b *bench) connect(ctx context.Context) error {
	_, projects, err := b.OpenDatabase(ctx)
	if err != nil {
		return err
	}

	pool := projects.Open(uuid.MustParse(b.Project)).Trusted()
	b.Database = socle.DatabaseOf(pool)

	if _, err := pool.Exec(ctx, tables, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	if err := os.Mkdir(b.Folder, 0o700); err != nil {
		return err
	}

	return os.WriteFile(filepath.Join(b.Folder, "file"), make([]byte, large), 0o600)
}

// send sends a request and parses the response into v, unless that is nil.
func (b *bench) send(v any, method, path, token, body string) error {
	q, err := b.request(method, path, token, []byte(body))
	if err != nil {
		return err
	}
	if token == "" {
		q.Header.Del("Authorization")
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
