package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/bench/socle"
)

// database has the connection parameters of the bare server.
type database struct {
	Host           string
	Port           uint16
	Name           string
	User, Password string
	Connections    int32
	Owner          *database // for statements that define tables
}

// startLimit starts the bare server on the project's database, with the login of the rows API.
func (b *bench) startLimit(ctx context.Context) (*socle.Process, error) {
	pool := b.project.Request().Config()
	c := pool.ConnConfig
	own := b.project.Owner().Config()
	d := database{c.Host, c.Port, c.Database, c.User, c.Password, pool.MaxConns, nil}
	d.Owner = &database{c.Host, c.Port, c.Database, own.ConnConfig.User, own.ConnConfig.Password, own.MaxConns, nil}
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}

	self, err := os.Executable()
	if err != nil {
		return nil, err
	}

	cmd := exec.CommandContext(ctx, self, "-limit")
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(text)), os.Stderr

	return socle.StartProcess(cmd)
}

// serveLimit runs the bare server. It prints its address.
func serveLimit(in io.Reader, out io.Writer) error {
	var d database
	if err := json.NewDecoder(in).Decode(&d); err != nil {
		return err
	}

	pool, err := barePool(context.Background(), d, "anon")
	if err != nil {
		return err
	}

	owner, err := barePool(context.Background(), *d.Owner, "")
	if err != nil {
		return err
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}

	fmt.Fprintf(out, "http://%s\n", listener.Addr())
	return http.Serve(listener, limitHandler(pool, owner))
}

// limitHandler serves request n of a kind at /kind/n/table.
func limitHandler(pool, owner *pgxpool.Pool) http.Handler {
	const settings = `select set_config('role', 'anon', true), set_config('request.jwt.claims', '{"role":"anon"}', true), set_config('request.method', $1, true),
		set_config('request.path', $2, true), set_config('request.headers', '{"host":"127.0.0.1:54321","user-agent":"Go-http-client/1.1","accept-encoding":"gzip"}', true),
		set_config('request.cookies', '{}', true), set_config('search_path', 'public', true)`

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
		batch.Queue(settings, r.method, q.URL.Path)
		batch.Queue(r.sql, r.args(n)...)

		results := pool.SendBatch(q.Context(), batch)
		defer results.Close()

		if _, err := results.Exec(); err != nil {
			http.Error(w, err.Error(), 500)
			return
		}

		if r.method != "GET" {
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
		_, _ = w.Write(body)
	})

	return mux
}

// barePool connects as the rows API does, without its features.
// role may be "".
func barePool(ctx context.Context, d database, role string) (*pgxpool.Pool, error) {
	c, err := pgxpool.ParseConfig("")
	if err != nil {
		return nil, err
	}

	c.ConnConfig.Host, c.ConnConfig.Port, c.ConnConfig.Database = d.Host, d.Port, d.Name
	c.ConnConfig.User, c.ConnConfig.Password = d.User, d.Password
	c.ConnConfig.TLSConfig, c.ConnConfig.Fallbacks = nil, nil
	if role != "" {
		c.ConnConfig.RuntimeParams["role"] = role // preparing happens outside of the requests' transactions
	}

	c.MaxConns = d.Connections

	return pgxpool.NewWithConfig(ctx, c)
}
