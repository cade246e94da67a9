package server

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/storageapi"
)

// storagePath is the root of the interface of a project's files for applications.
const storagePath = "/storage/v1"

// newStorage returns the files of a project for applications.
func (s *rows) newStorage(id uuid.UUID, settings *platform.RestConfig, verify verifier) *storageapi.Project {
	timeouts := map[string]int{"anon": settings.AnonTimeoutMS, "authenticated": settings.AuthenticatedTimeoutMS}
	p := &storageapi.Project{Blobs: s.blobs, Verify: verify, Bodies: s.bodies, Discard: s.discard, SignKey: s.signKey,
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

	id, err := uuid.Parse(project)
	if err != nil || len(project) != 36 {
		storageapi.ServeUnknown(w, r, unknown)
		return
	}

	entry, err := s.lookup(request.Start, cacheKey{project: id}, s.settingsLoader(r.Context(), id))
	if err == nil && entry.value == "" {
		s.remove(id)
		err = unknown
	}
	if err != nil {
		storageapi.ServeUnknown(w, r, err)
		return
	}

	request.Project = id

	p, err := s.handler(id, entry.value)
	if err != nil {
		storageapi.ServeUnknown(w, r, err)
		return
	}

	storageapi.Serve(w, r, p.storage, path)
}
