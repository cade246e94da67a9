package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/bench/socle"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/server"
)

// bench is a running Socle with one user, one project with tables and rows, and one publishable
// key.
type bench struct {
	*socle.Process
	postmaster string // process ID of PostgreSQL
	id         uuid.UUID
	key        string // of the project
	token      string // of the user
	project    *projectdb.Project
}

// rows is the URL of the project's rows.
func (b *bench) rows() string { return b.URL + "/projects/" + b.id.String() + "/rest/v1" }

// startSocle starts Socle and sets it up.
func startSocle(ctx context.Context, dir string) (*bench, error) {
	settings := append(socle.Settings(dir), "SOCLE_LOG_LEVEL=warn")
	process, err := socle.Serve(ctx, *program, dir, settings)
	if err != nil {
		return nil, err
	}

	b := &bench{Process: process}
	if err := b.setUp(ctx, dir, settings); err != nil {
		b.Stop()
		return nil, err
	}

	return b, nil
}

// setUp finds PostgreSQL, and creates the user, the project and the key.
func (b *bench) setUp(ctx context.Context, dir string, settings []string) (err error) {
	if b.postmaster, err = socle.FindPostmaster(dir); err != nil {
		return err
	}

	user, err := b.post("/users", "",
		`{"username": "bench", "email": "bench@example.com", "password": "correct horse battery"}`)
	if err != nil {
		return err
	}

	made, err := b.post("/projects", user.Metadata.Token, `{"name": "bench"}`)
	if err != nil {
		return err
	}

	b.id, b.token = made.Content.UUID, user.Metadata.Token
	key, err := b.post("/projects/"+b.id.String()+"/keys", user.Metadata.Token,
		`{"name": "bench", "kind": "publishable"}`)
	if err != nil {
		return err
	}

	b.key = key.Metadata.Key

	c, err := config.Load(settings, nil)
	if err != nil {
		return err
	}

	log := slog.New(slog.DiscardHandler)
	database, secret, err := server.OpenDatabase(ctx, c, log)
	if err != nil {
		return err
	}

	registry, err := database.Registry(ctx, secret, log)
	if err != nil {
		return err
	}

	b.project = registry.Open(b.id)
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
