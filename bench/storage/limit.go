package main

import (
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// bareServer is the limit.
type bareServer struct {
	parameters
	pool *pgxpool.Pool
}

// newLimit returns the handler of the bare server.
func newLimit(ctx context.Context, p parameters) (http.Handler, error) {
	s := &bareServer{parameters: p}

	var err error
	if s.pool, err = s.Database.Pool(ctx, ""); err != nil {
		return nil, err
	}

	mux := http.NewServeMux()
	mux.HandleFunc("/upload/{user}", s.upload)
	mux.HandleFunc("/list/{user}", s.list)
	mux.Handle("/download/", http.StripPrefix("/download/", http.FileServer(http.Dir(s.Folder))))

	return mux, nil
}

// upload stores the body as a file and inserts its row.
func (s *bareServer) upload(w http.ResponseWriter, r *http.Request) {
	size, err := s.store(r.Body)

	id := uuid.Must(uuid.NewV7())
	var body []byte
	if err == nil {
		err = s.pool.QueryRow(r.Context(), `
			insert into bench.files as f (uuid, container_uuid, full_file_name, mime_type, size, sha256,
				blob_uuid, bucket_id, created_by, updated_by)
			values ($1, $2, $3, 'application/octet-stream', $4, decode(repeat('00', 32), 'hex'), gen_random_uuid(),
				'letters', $1, $1)
			returning json_build_object('Id', f.uuid)::text`,
			id, s.Container, r.PathValue("user")+"/new/"+id.String(), size).Scan(&body)
	}

	respond(w, body, err)
}

// store writes a file, syncs it, renames it and syncs its folder.
func (s *bareServer) store(content io.Reader) (size int64, err error) {
	id := uuid.New()
	folder := filepath.Join(s.Folder, hex.EncodeToString(id[:1]))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return 0, err
	}

	f, err := os.Create(filepath.Join(s.Folder, id.String()))
	if err != nil {
		return 0, err
	}
	defer f.Close()

	if size, err = io.Copy(f, content); err != nil {
		return 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	if err := os.Rename(f.Name(), filepath.Join(folder, id.String())); err != nil {
		return 0, err
	}

	dir, err := os.Open(folder)
	if err != nil {
		return 0, err
	}
	defer dir.Close()

	return size, dir.Sync()
}

// list responds with the objects in the folder of a user.
func (s *bareServer) list(w http.ResponseWriter, r *http.Request) {
	var body []byte
	err := s.pool.QueryRow(r.Context(), `
		select json_agg(t)::text from (
			select full_file_name as name, uuid, size, mime_type, sha256, cache_control, created_at, updated_at
			from storage.files
			where container_uuid = $1 and full_file_name >= $2 || '/' and full_file_name < $2 || '0'
			order by full_file_name limit 30) t`,
		s.Container, r.PathValue("user")).Scan(&body)

	respond(w, body, err)
}

func respond(w http.ResponseWriter, body []byte, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}

	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}
