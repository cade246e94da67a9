package server

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/appkey"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/s3api"
	"github.com/socle-dev/socle/internal/storageapi"
	"github.com/socle-dev/socle/internal/token"
)

// storagePath is the root of the interface of a project's files for applications.
const storagePath = "/storage/v1"

// s3Path is the root of the S3 protocol below storagePath.
const s3Path = "/s3"

// newS3 returns the files of a project over the S3 protocol.
func (s *rows) newS3(id uuid.UUID, settings *platform.RestConfig) *s3api.Project {
	p := &s3api.Project{Blobs: s.blobs, Bodies: s.bodies, Discard: s.discard,
		Unavailable: inactiveFaults[settings.Status],
		Secret:      func(key uuid.UUID) string { return s.registry.S3Secret(id, key) },
		HasKey:      func(ctx context.Context, key uuid.UUID) error { return s.hasS3Key(ctx, id, key) }}
	if s.registry != nil {
		p.Database = s.registry.Open(id)
	}
	if s.url != "" {
		p.Root = s.url + "/projects/" + id.String() + storagePath + s3Path
	}

	return p
}

// hasS3Key fails with NotFound unless the project has an S3 key. It shares the cache of API keys.
func (s *rows) hasS3Key(ctx context.Context, project, key uuid.UUID) error {
	entry, err := s.lookup(ctx, cacheKey{project, token.Sum("S3 key " + key.String())},
		func(ctx context.Context) (cacheEntry, error) {
			if err := appkey.FindS3Key(ctx, s.store.DB(), project, key); err != nil {
				return cacheEntry{}, err
			}
			return cacheEntry{value: "s3", keyUUID: key}, nil
		})
	if err == nil && entry.value == "" {
		err = fault.New(fault.NotFound, "the key does not exist")
	}

	return err
}

// newStorage returns the files of a project for applications.
func (s *rows) newStorage(id uuid.UUID, settings *platform.RestConfig, verify verifier) *storageapi.Project {
	timeouts := map[string]int{"anon": settings.AnonTimeoutMS, "authenticated": settings.AuthenticatedTimeoutMS}
	p := &storageapi.Project{Blobs: s.blobs, Verify: verify, Bodies: s.bodies, Discard: s.discard, SignKey: s.signKey,
		Variants:    s.variants,
		Timeout:     func(role string) time.Duration { return time.Duration(timeouts[role]) * time.Millisecond },
		Unavailable: inactiveFaults[settings.Status]}
	if s.registry != nil {
		p.Database = s.registry.Open(id)
	}

	return p
}

// serveStorage handles a request to the interface of a project's files. It shares settings, keys
// and their cache with the rows API.
func (s *rows) serveStorage(w http.ResponseWriter, r *http.Request, project, path string) {
	request := httpx.From(r.Context())
	request.Route = "/projects/{projectUUID}" + storagePath
	unknown := fault.New(fault.NotFound, "Project not found").WithCode("project_not_found")

	serveUnknown := storageapi.ServeUnknown
	after, isS3 := strings.CutPrefix(path, s3Path)
	if isS3 = isS3 && (after == "" || after[0] == '/'); isS3 {
		serveUnknown = s3api.ServeUnknown
	}

	id, err := uuid.Parse(project)
	if err != nil || len(project) != 36 {
		serveUnknown(w, r, unknown)
		return
	}

	entry, err := s.findSettings(r.Context(), id)
	if err == nil && entry.value == "" {
		s.remove(id)
		err = unknown
	}
	if err != nil {
		serveUnknown(w, r, err)
		return
	}

	request.Project = id

	p, err := s.handler(id, entry.value)
	if err != nil {
		serveUnknown(w, r, err)
		return
	}

	if isS3 {
		s3api.Serve(w, r, p.s3, after)
		return
	}

	storageapi.Serve(w, r, p.storage, path)
}
