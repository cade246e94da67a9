package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/crypto/argon2"

	"github.com/socle-dev/socle/internal/token"
)

// bareServer is the limit.
type bareServer struct {
	parameters
	pool *pgxpool.Pool
	key  token.Key
}

// newLimit returns the handler of the bare server.
func newLimit(ctx context.Context, p parameters) (http.Handler, error) {
	s := &bareServer{parameters: p}

	var err error
	if s.pool, err = s.Database.Pool(ctx, ""); err != nil {
		return nil, err
	}
	if s.key, err = token.DeriveSigningKey([]byte("limit"), "limit"); err != nil {
		return nil, err
	}

	mux := http.NewServeMux()
	mux.HandleFunc("/user/{n}", s.getUser)
	mux.HandleFunc("/refresh/{n}", s.refresh)
	mux.HandleFunc("/login/{n}", s.login)

	return mux, nil
}

func (s *bareServer) account(r *http.Request) account {
	n, _ := strconv.Atoi(r.PathValue("n"))
	return s.Accounts[n]
}

// query writes the one text that a statement returns, with an access token if signed.
func (s *bareServer) query(w http.ResponseWriter, r *http.Request, signed bool, sql string, args ...any) {
	var body []byte
	err := s.pool.QueryRow(r.Context(), sql, args...).Scan(&body)
	if err == nil && signed {
		var access string
		access, err = s.key.SignJWT(body)
		body = fmt.Appendf(nil, `{"access_token":%q,"user":%s}`, access, body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}

	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

const userOf = `
	select row_to_json(u)::text from (
		select u.id, u.aud, u.role, u.email, u.email_confirmed_at, u.last_sign_in_at, u.raw_app_meta_data, u.raw_user_meta_data,
			(select json_agg(i) from auth.identities i where i.user_id = u.id) as identities,
			(select json_agg(f) from auth.mfa_factors f where f.user_id = u.id) as factors, u.created_at, u.updated_at
		from auth.users u `

func (s *bareServer) getUser(w http.ResponseWriter, r *http.Request) {
	a := s.account(r)
	s.query(w, r, false, userOf+`join auth.sessions s on s.user_id = u.id where s.id = $1) u`, a.Session)
}

func (s *bareServer) refresh(w http.ResponseWriter, r *http.Request) {
	a := s.account(r)
	s.query(w, r, true, `
		with s as (
			update bench.sessions set refresh_token_counter = refresh_token_counter + 1, refreshed_at = now() where id = $1
			returning user_id)`+userOf+`join s on s.user_id = u.id) u`, a.Session)
}

func (s *bareServer) login(w http.ResponseWriter, r *http.Request) {
	argon2.IDKey([]byte(password), make([]byte, 16), 2, 19<<10, 1, 32)
	a := s.account(r)
	s.query(w, r, true, `
		with s as (
			insert into bench.sessions (id, user_id) select $1, id from auth.users where email = $2 returning user_id
		), signed as (
			update bench.users set last_sign_in_at = now() where email = $2
		)`+userOf+`where u.email = $2) u`, uuid.New(), a.Email)
}
