package tables

import (
	"context"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schema"
)

func (s *Server) registerPolicies(p *operation.Pipeline) {
	operation.HandleInProject(p, listPolicies, s.listPolicies, nil)
	operation.HandleInProject(p, createPolicy, s.createPolicy, existingTable[createPolicyInput])
	operation.HandleInProject(p, updatePolicy, s.updatePolicy, existingTable[updatePolicyInput])
	operation.HandleInProject(p, deletePolicy, s.deletePolicy, nil)
}

var listPolicies = operation.Operation{
	ID: "listPolicies", Method: "GET", Path: "/tables/{tableUUID}/policies", Summary: "List a table's policies",
	Access: operation.Project(account.Viewer), Errors: operation.MemberErrors,
}

func (s *Server) listPolicies(ctx context.Context, p *projectdb.Project, in *tableInput) ([]schema.Policy, error) {
	return schema.ListPolicies(ctx, p.Trusted(), p.UUID, in.Table)
}

var createPolicy = operation.Operation{
	ID: "createPolicy", Method: "POST", Path: "/tables/{tableUUID}/policies", Summary: "Create a policy",
	Access: operation.Project(account.Developer), Errors: operation.DDLErrors, Timeout: operation.LongTimeout,
	Notes: "Policies apply while row level security is on, to roles with privileges on the table. A policy that " +
		"allows `anon` or `public` to write needs `confirm`. Unqualified names in conditions resolve in the system " +
		"catalog, then in the table's schema, then in public.",
	Example: `{"name": "own_rows", "command": "select", "roles": ["authenticated"], "using": "owner = current_user"}`,
}

type createPolicyInput struct {
	tableInput
	Body struct {
		Name       string   `json:"name"`
		Command    string   `json:"command,omitempty" enum:"all,select,insert,update,delete" doc:"Command that the policy applies to. Default: all."`
		Roles      []string `json:"roles" minItems:"1" maxItems:"4" enum:"public,anon,authenticated,service_role"`
		Permissive *bool    `json:"permissive,omitempty" doc:"Whether the policy is permissive. Default: true."`
		Using      string   `json:"using,omitempty" maxLength:"10000" doc:"SQL condition on existing rows; for all commands except insert."`
		WithCheck  string   `json:"with_check,omitempty" maxLength:"10000" doc:"SQL condition on written rows; for insert, and where it differs from using."`
		Confirm    bool     `json:"confirm,omitempty"`
		operation.ProjectInBody
	}
}

func (s *Server) createPolicy(ctx context.Context, p *projectdb.Project, in *createPolicyInput) (schema.Policy, error) {
	b := in.Body
	if b.Command == "" {
		b.Command = "all"
	}

	return schema.CreatePolicy(ctx, p.Owner(), p.UUID, in.Table, schema.NewPolicy{Name: b.Name,
		Command: b.Command, Roles: b.Roles,
		Permissive: b.Permissive == nil || *b.Permissive, Using: b.Using, WithCheck: b.WithCheck, Confirm: b.Confirm})
}

type policyInput struct {
	tableInput
	Policy string `path:"policyName" maxLength:"200"`
}

var updatePolicy = operation.Operation{
	ID: "updatePolicy", Method: "PUT", Path: "/tables/{tableUUID}/policies/{policyName}", Summary: "Update a policy",
	Access: operation.Project(account.Developer), Errors: operation.DDLErrors, Timeout: operation.LongTimeout,
	Notes: "The command and permissiveness cannot be changed; delete and re-create the policy instead. `confirm` " +
		"is needed as for a new policy.",
	Example: `{"using": "owner = current_user"}`,
}

type updatePolicyInput struct {
	policyInput
	Body struct {
		Name      *string  `json:"name,omitempty"`
		Roles     []string `json:"roles,omitempty" minItems:"1" maxItems:"4" enum:"public,anon,authenticated,service_role"`
		Using     *string  `json:"using,omitempty" maxLength:"10000"`
		WithCheck *string  `json:"with_check,omitempty" maxLength:"10000"`
		Confirm   bool     `json:"confirm,omitempty"`
		operation.ProjectInBody
	}
}

func (s *Server) updatePolicy(ctx context.Context, p *projectdb.Project, in *updatePolicyInput) (schema.Policy, error) {
	b := in.Body
	if b.Name == nil && b.Roles == nil && b.Using == nil && b.WithCheck == nil {
		return schema.Policy{}, fault.NothingToChange()
	}

	return schema.UpdatePolicy(ctx, p.Owner(), p.UUID, in.Table, in.Policy,
		schema.PolicyUpdate{Name: b.Name, Roles: b.Roles, Using: b.Using, WithCheck: b.WithCheck, Confirm: b.Confirm})
}

var deletePolicy = operation.Operation{
	ID: "deletePolicy", Method: "DELETE", Path: "/tables/{tableUUID}/policies/{policyName}", Summary: "Delete a policy",
	Access: operation.Project(account.Developer), Errors: operation.DDLDeleteErrors, Timeout: operation.LongTimeout,
}

func (s *Server) deletePolicy(ctx context.Context, p *projectdb.Project, in *policyInput) (schema.Policy, error) {
	return schema.DeletePolicy(ctx, p.Owner(), p.UUID, in.Table, in.Policy)
}
