package server

import (
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/authapi"
	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/platform"
)

// authPath is the root of the interface of a project's end users.
const authPath = "/auth/v1"

// inactiveFaults maps the status of an inactive project to its response about end users.
var inactiveFaults = map[string]*fault.Error{
	platform.Paused:  fault.New(fault.Conflict, "The project is paused").WithCode("project_paused"),
	platform.Deleted: fault.New(fault.NotFound, "The project is deleted").WithCode("project_deleted"),
}

// openDirectory returns the end users of a project under its settings.
func (s *rows) openDirectory(id uuid.UUID, config platform.RestConfig) (*enduser.Directory, error) {
	c, err := s.endUsers.ParseConfig(id, enduser.StoredConfig{Settings: config.EndUsers, Secrets: config.EndUserSecrets,
		Generation: config.KeyGeneration})
	if err != nil {
		return nil, fmt.Errorf("read the settings of end users: %w", err)
	}

	return s.endUsers.Directory(id, c)
}

// serveAuth handles a request to the interface of a project's end users. It shares settings, keys
// and their cache with the rows API.
func (s *rows) serveAuth(w http.ResponseWriter, r *http.Request, project, path string) {
	request := httpx.From(r.Context())
	request.Route = "/projects/{projectUUID}" + authPath

	id, err := uuid.Parse(project)
	if err != nil || len(project) != 36 {
		authapi.ServeUnknown(w, r, fault.New(fault.NotFound, "Project not found").WithCode("project_not_found"))
		return
	}

	entry, err := s.findSettings(r.Context(), id)
	if err != nil {
		authapi.ServeUnknown(w, r, err)
		return
	}

	if entry.value == "" {
		s.remove(id)
		authapi.ServeUnknown(w, r, fault.New(fault.NotFound, "Project not found").WithCode("project_not_found"))

		return
	}

	request.Project = id

	p, err := s.handler(id, entry.value)
	if err != nil {
		authapi.ServeUnknown(w, r, err)
		return
	}

	authapi.Serve(w, r, p.auth, path)
}
