package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/bench/socle"
	"github.com/socle-dev/socle/internal/projectdb"
)

// bench is a running Socle with one user, one project with tables and rows, and one publishable
// key.
type bench struct {
	*socle.Instance
	id      uuid.UUID
	key     string // key of the project
	token   string // token of the user
	project *projectdb.Project
}

// rows is the URL of the project's rows.
func (b *bench) rows() string { return b.URL + "/projects/" + b.id.String() + "/rest/v1" }

// setUp creates the user, the project with its tables, and the key.
func (b *bench) setUp(ctx context.Context) error {
	user, err := b.post("/users", "",
		`{"username": "bench", "email": "bench@example.com", "password": "correct horse battery"}`)
	if err != nil {
		return err
	}

	project, err := b.post("/projects", user.Metadata.Token, `{"name": "bench"}`)
	if err != nil {
		return err
	}

	b.id, b.token = project.Content.UUID, user.Metadata.Token
	key, err := b.post("/projects/"+b.id.String()+"/keys", user.Metadata.Token,
		`{"name": "bench", "kind": "publishable"}`)
	if err != nil {
		return err
	}

	b.key = key.Metadata.Key

	_, projects, err := b.OpenDatabase(ctx)
	if err != nil {
		return err
	}

	b.project = projects.Open(b.id)
	conn, err := pgx.ConnectConfig(ctx, b.project.Owner().Config().ConnConfig) // rows in millions take minutes
	if err != nil {
		return err
	}
	defer conn.Close(ctx)

	_, err = conn.Exec(ctx, fmt.Sprintf("set statement_timeout = 0;"+schema, *rows, wideTables-1),
		pgx.QueryExecModeSimpleProtocol)
	return err
}

type reply struct {
	Content  struct{ UUID uuid.UUID }
	Metadata struct{ Token, Key string }
}

func (b *bench) post(path, token, body string) (r reply, err error) {
	q, err := http.NewRequest("POST", b.URL+path, strings.NewReader(body))
	if err != nil {
		return r, err
	}

	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Authorization", "Bearer "+token)

	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return r, err
	}
	defer res.Body.Close()

	if res.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(res.Body)
		return r, fmt.Errorf("%s: %s", path, text)
	}

	return r, json.NewDecoder(res.Body).Decode(&r)
}
