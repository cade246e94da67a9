package api

import (
	"context"

	"github.com/google/uuid"

	"socle/internal/platform"
	"socle/internal/rest/catalog"
	"socle/internal/rest/typescript"
	"socle/internal/tenant"
)

func (s *Server) registerTypes() { within(s, getTypes, s.getTypes, nil) }

var getTypes = Operation{
	ID: "getTypes", Method: "GET",
	Path: "/projects/{projectUUID}/types", Summary: "Get the types of a project's tables, views and functions",
	Access: projectInPath(platform.Viewer), Errors: []int{400, 401, 404, 500},
	Notes: "Source text for a client library: `createClient<Database>(…)` of @supabase/supabase-js knows from it what each table has. `socle gen types` prints it.",
}

type getTypesInput struct {
	Project  uuid.UUID `path:"projectUUID" format:"uuid"`
	Language string    `query:"language" enum:"typescript" default:"typescript"`
}

type sourceText struct {
	Language string `json:"language"`
	Source   string `json:"source"`
}

func (s *Server) getTypes(ctx context.Context, p *tenant.Project, in *getTypesInput) (sourceText, error) {
	settings, err := s.platform.GetRestSettings(ctx, p.UUID)
	if err != nil {
		return sourceText{}, err
	}

	c, err := catalog.Read(ctx, p.Trusted(), catalog.Options{Schemas: settings.Schemas})
	if err != nil {
		return sourceText{}, err
	}

	enums, err := catalog.ReadEnums(ctx, p.Trusted())
	return sourceText{in.Language, typescript.Source(c, enums)}, err
}
