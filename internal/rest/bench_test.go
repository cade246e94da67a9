package rest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// discardWriter discards a response.
type discardWriter struct{ h http.Header }

func (n *discardWriter) Header() http.Header         { return n.h }
func (n *discardWriter) Write(b []byte) (int, error) { return len(b), nil }
func (n *discardWriter) WriteHeader(int)             {}

func BenchmarkReadOne(b *testing.B) {
	a := newAPI(b, "")
	b.ReportAllocs()

	b.RunParallel(func(p *testing.PB) {
		w := &discardWriter{http.Header{}}
		r := httptest.NewRequest("GET", "/clients?select=id,name&id=eq.2", nil)
		r.Header.Set("Authorization", "Bearer authenticated:ann")

		for p.Next() {
			clear(w.h)
			a.server.ServeHTTP(w, r)
		}
	})
}

// BenchmarkUpdateOne shows what an Idempotency-Key costs, and that its absence costs nothing.
func BenchmarkUpdateOne(b *testing.B) {
	a := newAPI(b, keysSQL(b), transactions)
	for _, name := range []string{"plain", "keyed"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()

			var keys atomic.Int64
			b.RunParallel(func(p *testing.PB) {
				w := &discardWriter{http.Header{}}
				for p.Next() {
					clear(w.h)
					r := httptest.NewRequest("PATCH", "/clients?id=eq.2", strings.NewReader(`{"name": "Bea"}`))
					r.Header.Set("Authorization", "Bearer authenticated:ann")
					if name == "keyed" {
						r.Header.Set(idempotencyHeader, strconv.FormatInt(keys.Add(1), 10))
					}
					a.server.ServeHTTP(w, r)
				}
			})
		})
	}
}

// BenchmarkLimit runs the same round trip with pgx alone.
func BenchmarkLimit(b *testing.B) {
	a := newAPI(b, "")
	role, _ := a.server.Auth.Role("authenticated")
	b.ReportAllocs()

	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			limit(b, role.Pool)
		}
	})
}

func limit(b *testing.B, pool *pgxpool.Pool) {
	conn, err := pool.Acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Release()

	pc := conn.Conn().PgConn()

	if _, err := conn.Conn().Prepare(b.Context(), "settings",
		"select set_config('search_path', $1, true), set_config('role', $2, true), set_config('request.jwt.claims', $3, true)"); err != nil {
		b.Fatal(err)
	}
	if _, err := conn.Conn().Prepare(b.Context(), "one",
		"select coalesce(json_agg(t), '[]')::text from (select id, name from public.clients where id = $1) t"); err !=
		nil {
		b.Fatal(err)
	}

	p := pc.StartPipeline(b.Context())
	p.SendQueryPrepared("settings", [][]byte{
		[]byte("public"), []byte("authenticated"), []byte(`{"role":"authenticated","sub":"ann"}`),
	}, nil, nil)
	p.SendQueryPrepared("one", [][]byte{[]byte("2")}, nil, nil)

	if err := p.Sync(); err != nil {
		b.Fatal(err)
	}
	if err := p.Close(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkInsert(b *testing.B) {
	a := newAPI(b,
		"create table events (id bigint generated always as identity primary key, note text not null); grant all on events to authenticated")

	b.ReportAllocs()

	b.RunParallel(func(p *testing.PB) {
		w := &discardWriter{http.Header{}}
		body := strings.NewReader("")
		r := httptest.NewRequest("POST", "/events", strings.NewReader(`{"note":"event"}`))
		r.Header.Set("Authorization", "Bearer authenticated:ann")
		r.Header.Set("Prefer", "return=minimal")
		r.Body = io.NopCloser(body)
		for p.Next() {
			body.Reset(`{"note":"event"}`)
			clear(w.h)
			a.server.ServeHTTP(w, r)
		}
	})
}
