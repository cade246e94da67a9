package rows

import (
	"context"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/typescript"
)

func (s *Server) registerTypes(p *operation.Pipeline) {
	operation.HandleInProject(p, getTypes, s.getTypes, nil)
}

var getTypes = operation.Operation{
	ID: "getTypes", Method: "GET",
	Path: "/projects/{projectUUID}/types", Summary: "Get a project's type definitions",
	Access: operation.ProjectInPath(account.Viewer), Errors: []int{400, 401, 404, 500},
	Notes: "TypeScript source of the tables, views and functions for client libraries, such as " +
		"`createClient<Database>(…)` of @supabase/supabase-js. `socle gen types` prints it.",
}

type getTypesInput struct {
	Project  uuid.UUID `path:"projectUUID" format:"uuid"`
	Language string    `query:"language" enum:"typescript" default:"typescript"`
}

type sourceText struct {
	Language string `json:"language"`
	Source   string `json:"source"`
}

func (s *Server) getTypes(ctx context.Context, p *projectdb.Project, in *getTypesInput) (sourceText, error) {
	settings, err := s.Platform.GetRestSettings(ctx, p.UUID)
	if err != nil {
		return sourceText{}, err
	}

	c, err := catalog.Read(ctx, p.Trusted(), catalog.Options{Schemas: settings.Schemas})
	if err != nil {
		return sourceText{}, err
	}

	types, err := catalog.ReadTypes(ctx, p.Trusted())
	if err != nil {
		return sourceText{}, err
	}

	computed, err := catalog.ReadComputed(ctx, p.Trusted(), settings.Schemas)
	return sourceText{in.Language, typescript.Source(c, types, computed)}, err
}
