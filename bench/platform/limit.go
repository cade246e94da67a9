package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/crypto/argon2"
)

// bareServer is the limit.
type bareServer struct {
	bench
	platform, project *pgxpool.Pool
}

// newLimit returns the handler of the bare server.
func newLimit(ctx context.Context, b bench) (http.Handler, error) {
	s := &bareServer{bench: b}

	var err error
	if s.platform, err = s.Platform.Pool(ctx, ""); err != nil {
		return nil, err
	}
	if s.project, err = s.Database.Pool(ctx, ""); err != nil {
		return nil, err
	}

	mux := http.NewServeMux()
	for _, o := range operations {
		mux.HandleFunc("/"+strings.ReplaceAll(o.name, " ", "-")+"/{n}", o.limit(s))
	}

	return mux, nil
}

// query returns a handler that responds with the one text that a statement returns.
func (s *bareServer) query(pool *pgxpool.Pool, sql string, args func(n int) []any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.PathValue("n"))
		var body []byte
		err := pool.QueryRow(r.Context(), sql, args(n)...).Scan(&body)
		respond(w, body, err)
	}
}

func respond(w http.ResponseWriter, body []byte, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}

	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

func (s *bareServer) whoAmI() http.HandlerFunc {
	return s.query(s.platform, `
		select row_to_json(t)::text from (
			select u.uuid, u.username, u.email, u.bio, u.status, u.organization_uuid, u.created_at, u.updated_at
			from platform.sessions s join platform.users u on u.uuid = s.user_uuid
			where s.uuid = $1 and s.expires_at > now() and u.status = 'active') t`,
		func(int) []any { return []any{s.Session} })
}

func (s *bareServer) listProjects() http.HandlerFunc {
	return s.query(s.platform, `
		select json_agg(t)::text from (
			select p.uuid, p.name, p.description, p.status, p.organization_uuid, p.created_at, p.created_by, p.updated_at,
				p.updated_by, count(*) over () as total
			from platform.projects p join platform.members m on m.organization_uuid = p.organization_uuid
			where m.user_uuid = $1 and p.status in ('active', 'paused') order by p.created_at, p.uuid limit 20) t`,
		func(int) []any { return []any{s.User} })
}

func (s *bareServer) getContainer() http.HandlerFunc {
	return s.query(s.project, `select row_to_json(c)::text from storage.containers c where uuid = $1`,
		func(n int) []any { return []any{s.Containers[n%containers]} })
}

func (s *bareServer) listFiles() http.HandlerFunc {
	return s.query(s.project, `
		select json_agg(t)::text from (
			select f.uuid, f.container_uuid, f.full_file_name, f.mime_type, f.size, f.created_at, f.created_by, f.updated_at,
				f.updated_by, c.total_files
			from storage.containers c join storage.files f on f.container_uuid = c.uuid
			where c.uuid = $1 order by f.created_at, f.uuid limit 20) t`,
		func(int) []any { return []any{s.Listed} })
}

func (s *bareServer) listTables() http.HandlerFunc {
	return s.query(s.project, `
		select json_agg(t)::text from (
			select t.*, pg_size_pretty(pg_total_relation_size(t.oid)) as total_size from (
				select c.oid, c.relname, n.nspname, c.reltuples, count(*) over () as total
				from pg_class c join pg_namespace n on n.oid = c.relnamespace
				where c.relkind in ('r', 'p') and n.nspname = 'public' order by c.relname, c.oid limit 20) t) t`,
		func(int) []any { return nil })
}

func (s *bareServer) updateContainer() http.HandlerFunc {
	const sql = `update storage.containers c set description = $2, updated_at = now() where uuid = $1
		returning row_to_json(c)::text`
	return func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Description string }
		err := json.NewDecoder(r.Body).Decode(&in)

		n, _ := strconv.Atoi(r.PathValue("n"))
		var body []byte
		if err == nil {
			err = s.project.QueryRow(r.Context(), sql, s.Containers[n%containers], in.Description).Scan(&body)
		}

		respond(w, body, err)
	}
}

func (s *bareServer) createResponse() http.HandlerFunc {
	const sql = `insert into bench.responses as r (uuid, form_uuid, version, state, answers, submitted_at)
		values ($1, $2, 1, 'complete', $3, now()) returning row_to_json(r)::text`
	return func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Answers json.RawMessage }
		err := json.NewDecoder(r.Body).Decode(&in)

		var body []byte
		if err == nil {
			err = s.project.QueryRow(r.Context(), sql, uuid.Must(uuid.NewV7()), s.Form, in.Answers).Scan(&body)
		}

		respond(w, body, err)
	}
}

func (s *bareServer) upload() http.HandlerFunc {
	const sql = `insert into bench.files as f (uuid, container_uuid, full_file_name, mime_type, size, sha256,
			blob_uuid, bucket_id, created_by, updated_by)
		values ($1, $2, $3, 'application/octet-stream', $4, decode(repeat('00', 32), 'hex'), gen_random_uuid(), 'uploads',
			$5, $5)
		returning row_to_json(f)::text`
	return func(w http.ResponseWriter, r *http.Request) {
		name, size, err := s.store(r)
		var body []byte
		if err == nil {
			err = s.project.QueryRow(r.Context(), sql, uuid.Must(uuid.NewV7()), s.Uploads, name, size, s.User).
				Scan(&body)
		}

		respond(w, body, err)
	}
}

// store writes the file of a multipart body, syncs it, renames it and syncs its folder.
func (s *bareServer) store(r *http.Request) (name string, size int64, err error) {
	parts, err := r.MultipartReader()
	if err != nil {
		return "", 0, err
	}

	part, err := parts.NextPart()
	if err != nil {
		return "", 0, err
	}

	text, err := io.ReadAll(part)
	if err != nil {
		return "", 0, err
	}

	if part, err = parts.NextPart(); err != nil {
		return "", 0, err
	}

	id := uuid.New()
	path := filepath.Join(s.Folder, hex.EncodeToString(id[:1]))
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", 0, err
	}

	f, err := os.Create(filepath.Join(s.Folder, id.String()))
	if err != nil {
		return "", 0, err
	}
	defer f.Close()

	if size, err = io.Copy(f, part); err != nil {
		return "", 0, err
	}
	if err := f.Sync(); err != nil {
		return "", 0, err
	}
	if err := os.Rename(f.Name(), filepath.Join(path, id.String())); err != nil {
		return "", 0, err
	}

	dir, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer dir.Close()

	return string(text), size, dir.Sync()
}

func (s *bareServer) download() http.HandlerFunc {
	return http.StripPrefix("/download-of-1-MiB", http.FileServer(http.Dir(s.Folder))).ServeHTTP
}

// authorizedDownload reads the file's row before the file.
func (s *bareServer) authorizedDownload() http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var mimeType string
		err := s.project.QueryRow(r.Context(), `
			select f.mime_type from storage.files f join storage.containers c on c.uuid = f.container_uuid
			where f.uuid = $1 and not c.deleting`, s.File).Scan(&mimeType)
		if err != nil {
			respond(w, nil, err)
			return
		}

		w.Header().Set("Content-Type", mimeType)
		http.ServeFile(w, r, filepath.Join(s.Folder, "file"))
	}
}

func (s *bareServer) login() http.HandlerFunc {
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	return func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)

		slots <- struct{}{}
		argon2.IDKey([]byte(password), make([]byte, 16), 2, 19<<10, 1, 32)
		<-slots

		respond(w, nil, err)
	}
}
