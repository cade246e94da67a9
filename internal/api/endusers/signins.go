package endusers

import (
	"context"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
)

// registerSignIns registers the operations on the ways by which an end user signs in.
func (s *Server) registerSignIns(p *operation.Pipeline) {
	operation.HandleInProject(p, listEndUserSessions, s.listEndUserSessions, nil)
	operation.HandleInProject(p, deleteEndUserSession, s.deleteEndUserSession, nil)
	operation.HandleInProject(p, listEndUserFactors, s.listEndUserFactors, nil)
	operation.HandleInProject(p, deleteEndUserFactor, s.deleteEndUserFactor, nil)
	operation.HandleInProject(p, listEndUserPasskeys, s.listEndUserPasskeys, nil)
	operation.HandleInProject(p, deleteEndUserPasskey, s.deleteEndUserPasskey, nil)
	operation.HandleInProject(p, listEndUserIdentities, s.listEndUserIdentities, nil)
}

var listEndUserSessions = operation.Operation{
	ID: "listEndUserSessions", Method: "GET", Path: "/projects/{projectUUID}/end-users/{endUserUUID}/sessions",
	Summary: "List an end user's sessions",
	Access:  operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
}

type listEndUserSessionsInput struct {
	operation.PageQuery
	Sort    string    `query:"sort" enum:"createdAt,refreshedAt" default:"createdAt"`
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	UUID    uuid.UUID `path:"endUserUUID" format:"uuid"`
}

func (s *Server) listEndUserSessions(
	ctx context.Context, p *projectdb.Project, in *listEndUserSessionsInput,
) (operation.Answer[[]enduser.AccountSession, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	d, err := s.EndUsers.Open(ctx, p.UUID)
	if err != nil {
		return operation.ListOf([]enduser.AccountSession{}, page, 0), err
	}

	sessions, total, err := d.ListSessions(ctx, in.UUID, page)
	return operation.ListOf(sessions, page, total), asRule(err)
}

var deleteEndUserSession = operation.Operation{
	ID: "deleteEndUserSession", Method: "DELETE",
	Path:    "/projects/{projectUUID}/end-users/{endUserUUID}/sessions/{endUserSessionUUID}",
	Summary: "End a session of an end user",
	Access:  operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
	Notes: "The rows API accepts the session's access token to its end.",
}

type deleteEndUserSessionInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	UUID    uuid.UUID `path:"endUserUUID" format:"uuid"`
	Session uuid.UUID `path:"endUserSessionUUID" format:"uuid"`
}

func (s *Server) deleteEndUserSession(
	ctx context.Context, p *projectdb.Project, in *deleteEndUserSessionInput,
) (enduser.AccountSession, error) {
	d, err := s.EndUsers.Open(ctx, p.UUID)
	if err != nil {
		return enduser.AccountSession{}, err
	}

	ended, err := d.EndSession(ctx, in.UUID, in.Session, endUserClient(ctx))
	return ended, asRule(err)
}

var listEndUserFactors = operation.Operation{
	ID: "listEndUserFactors", Method: "GET", Path: "/projects/{projectUUID}/end-users/{endUserUUID}/factors",
	Summary: "List an end user's second factors",
	Access:  operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
	Notes: "All of them: a user has ten at most.",
}

func (s *Server) listEndUserFactors(
	ctx context.Context, p *projectdb.Project, in *endUserInput,
) ([]enduser.AccountFactor, error) {
	d, err := s.EndUsers.Open(ctx, p.UUID)
	if err != nil {
		return nil, err
	}

	factors, err := d.ListFactors(ctx, in.UUID)
	accounts := make([]enduser.AccountFactor, len(factors))
	for i, f := range factors {
		accounts[i] = f.Account()
	}

	return accounts, asRule(err)
}

var deleteEndUserFactor = operation.Operation{
	ID: "deleteEndUserFactor", Method: "DELETE",
	Path:    "/projects/{projectUUID}/end-users/{endUserUUID}/factors/{factorUUID}",
	Summary: "Delete a second factor of an end user",
	Access:  operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
	Notes: "For a user who has lost a device. With the last verified factor the recovery codes go, too; sessions " +
		"that used it fall back to the first level.",
}

type deleteEndUserFactorInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	UUID    uuid.UUID `path:"endUserUUID" format:"uuid"`
	Factor  uuid.UUID `path:"factorUUID" format:"uuid"`
}

func (s *Server) deleteEndUserFactor(
	ctx context.Context, p *projectdb.Project, in *deleteEndUserFactorInput,
) (enduser.AccountFactor, error) {
	d, err := s.EndUsers.Open(ctx, p.UUID)
	if err != nil {
		return enduser.AccountFactor{}, err
	}

	deleted, err := d.DeleteFactor(ctx, in.UUID, in.Factor, endUserClient(ctx))
	return deleted.Account(), asRule(err)
}

var listEndUserPasskeys = operation.Operation{
	ID: "listEndUserPasskeys", Method: "GET", Path: "/projects/{projectUUID}/end-users/{endUserUUID}/passkeys",
	Summary: "List an end user's passkeys",
	Access:  operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
	Notes: "All of them: a user has ten at most. Security keys as second factors are among the factors.",
}

func (s *Server) listEndUserPasskeys(
	ctx context.Context, p *projectdb.Project, in *endUserInput,
) ([]enduser.AccountPasskey, error) {
	d, err := s.EndUsers.Open(ctx, p.UUID)
	if err != nil {
		return nil, err
	}

	passkeys, err := d.ListPasskeys(ctx, in.UUID)
	accounts := make([]enduser.AccountPasskey, len(passkeys))
	for i, k := range passkeys {
		accounts[i] = k.Account()
	}

	return accounts, asRule(err)
}

var deleteEndUserPasskey = operation.Operation{
	ID: "deleteEndUserPasskey", Method: "DELETE",
	Path:    "/projects/{projectUUID}/end-users/{endUserUUID}/passkeys/{passkeyUUID}",
	Summary: "Delete a passkey of an end user",
	Access:  operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
	Notes: "For a user who has lost a device. Sessions that it began go on: end them as well.",
}

type deleteEndUserPasskeyInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	UUID    uuid.UUID `path:"endUserUUID" format:"uuid"`
	Passkey uuid.UUID `path:"passkeyUUID" format:"uuid"`
}

func (s *Server) deleteEndUserPasskey(
	ctx context.Context, p *projectdb.Project, in *deleteEndUserPasskeyInput,
) (enduser.AccountPasskey, error) {
	d, err := s.EndUsers.Open(ctx, p.UUID)
	if err != nil {
		return enduser.AccountPasskey{}, err
	}

	deleted, err := d.DeletePasskey(ctx, in.UUID, in.Passkey, endUserClient(ctx))
	return deleted.Account(), asRule(err)
}

var listEndUserIdentities = operation.Operation{
	ID: "listEndUserIdentities", Method: "GET", Path: "/projects/{projectUUID}/end-users/{endUserUUID}/identities",
	Summary: "List an end user's identities",
	Access:  operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
}

type listEndUserIdentitiesInput struct {
	operation.PageQuery
	Sort    string    `query:"sort" enum:"createdAt,provider" default:"createdAt"`
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	UUID    uuid.UUID `path:"endUserUUID" format:"uuid"`
}

func (s *Server) listEndUserIdentities(
	ctx context.Context, p *projectdb.Project, in *listEndUserIdentitiesInput,
) (operation.Answer[[]enduser.AccountIdentity, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	d, err := s.EndUsers.Open(ctx, p.UUID)
	if err != nil {
		return operation.ListOf([]enduser.AccountIdentity{}, page, 0), err
	}

	identities, total, err := d.ListIdentities(ctx, in.UUID, page)
	return operation.ListOf(identities, page, total), asRule(err)
}
