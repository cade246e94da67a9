package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/bench/socle"
)

// parameters are those of the bare server.
type parameters struct {
	Database socle.Database // with the login of the rows API
	Owner    socle.Database // for statements that define tables
	Rows     int
}

// newLimit returns the handler of the bare server on the project's database.
func newLimit(ctx context.Context, p parameters) (http.Handler, error) {
	pool, err := p.Database.Pool(ctx, "anon")
	if err != nil {
		return nil, err
	}

	owner, err := p.Owner.Pool(ctx, "")
	if err != nil {
		return nil, err
	}

	*rows = p.Rows
	return limitHandler(pool, owner), nil
}

// limitHandler serves request n of a kind at /kind/n/table.
func limitHandler(pool, owner *pgxpool.Pool) http.Handler {
	const settings = `select set_config('role', 'anon', true), set_config('request.jwt.claims', '{"role":"anon"}', true)`

	mux := http.NewServeMux()
	mux.HandleFunc("/{request}/{n}/{table...}", func(w http.ResponseWriter, q *http.Request) {
		var i, n int
		fmt.Sscan(q.PathValue("request"), &i)
		fmt.Sscan(q.PathValue("n"), &n)

		r := requests[i]
		_, _ = io.Copy(io.Discard, q.Body)

		if r.ddl != nil {
			if _, err := owner.Exec(q.Context(), r.ddl(n), pgx.QueryExecModeSimpleProtocol); err != nil {
				http.Error(w, err.Error(), 500)
			}
			return
		}

		batch := &pgx.Batch{}
		batch.Queue(settings)
		batch.Queue(r.sql, r.args(n)...)

		results := pool.SendBatch(q.Context(), batch)
		defer results.Close()

		if _, err := results.Exec(); err != nil {
			http.Error(w, err.Error(), 500)
			return
		}

		if !r.returns {
			if _, err := results.Exec(); err != nil {
				http.Error(w, err.Error(), 500)
			}
			return
		}

		var body []byte
		if err := results.QueryRow().Scan(&body); err != nil {
			http.Error(w, err.Error(), 500)
			return
		}

		w.Header().Set("Content-Type", "application/json")
		if r.method == "POST" {
			w.WriteHeader(http.StatusCreated)
		}
		_, _ = w.Write(body)
	})

	return mux
}
