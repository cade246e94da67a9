package tables

import (
	"context"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schema"
)

func (s *Server) registerGrants(p *operation.Pipeline) {
	operation.HandleInProject(p, listGrants, s.listGrants, nil)
	operation.HandleInProject(p, updateGrants, s.updateGrants, existingTable[updateGrantsInput])
}

var listGrants = operation.Operation{
	ID: "listGrants", Method: "GET", Path: "/tables/{tableUUID}/grants", Summary: "List a table's grants",
	Access: operation.Project(account.Viewer), Errors: operation.MemberErrors,
}

func (s *Server) listGrants(ctx context.Context, p *projectdb.Project, in *tableInput) ([]schema.Grant, error) {
	return schema.ListGrants(ctx, p.Trusted(), p.UUID, in.Table)
}

var updateGrants = operation.Operation{
	ID: "updateGrants", Method: "PUT", Path: "/tables/{tableUUID}/grants", Summary: "Update a table's grants",
	Access: operation.Project(account.Developer), Errors: operation.DDLErrors, Timeout: operation.LongTimeout,
	Notes: "Each named role gets exactly these privileges; other roles keep theirs. Policies restrict the rows " +
		"that a role can reach. Write access for `anon` or `public` needs `confirm`.",
	Example: `{"grants": [{"role": "anon", "privileges": ["select"]}]}`,
}

type updateGrantsInput struct {
	tableInput
	Body struct {
		Grants  []schema.NewGrant `json:"grants" minItems:"1" maxItems:"4"`
		Confirm bool              `json:"confirm,omitempty"`
		operation.ProjectInBody
	}
}

func (s *Server) updateGrants(
	ctx context.Context, p *projectdb.Project, in *updateGrantsInput,
) ([]schema.Grant, error) {
	return schema.UpdateGrants(ctx, p.Owner(), p.UUID, in.Table, in.Body.Grants, in.Body.Confirm)
}
