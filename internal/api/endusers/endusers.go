package endusers

import (
	"cmp"
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
)

// registerEndUsers registers the operations on a project's end users. Package authapi serves those
// users themselves.
func (s *Server) registerEndUsers(p *operation.Pipeline) {
	operation.HandleInProject(p, createEndUser, s.createEndUser, nil)
	operation.HandleInProject(p, importEndUsers, s.importEndUsers, nil)
	operation.HandleInProject(p, listEndUsers, s.listEndUsers, nil)
	operation.HandleInProject(p, getEndUser, s.getEndUser, nil)
	operation.HandleInProject(p, updateEndUser, s.updateEndUser, s.findEndUser)
	operation.HandleInProject(p, deleteEndUser, s.deleteEndUser, nil)
	operation.HandleInProject(p, deleteEndUserSessions, s.deleteEndUserSessions, nil)
	operation.HandleInProject(p, createEndUserToken, s.createEndUserToken, nil)
}

// asRule translates a failure from package enduser for this API: a body member that breaks a rule
// is unprocessable.
func asRule(err error) error {
	if fault.Is(err, fault.NotFound) {
		return fault.Missing().WithCause(err)
	}
	if !fault.Is(err, fault.Invalid) {
		return err
	}

	e := *fault.Of(err)
	e.Kind = fault.Unprocessable

	return &e
}

// endUserClient returns a request's origin.
func endUserClient(ctx context.Context) enduser.Client {
	request := httpx.From(ctx)
	return enduser.Client{Address: request.Client, Network: httpx.Network(request.Client), Agent: request.UserAgent}
}

var createEndUser = operation.Operation{
	ID: "createEndUser", Method: "POST", Path: "/projects/{projectUUID}/end-users", Summary: "Create an end user",
	Access: operation.ProjectInPath(account.Admin), Errors: []int{400, 401, 403, 404, 422, 500},
	Notes:   "Triggers of the project on `auth.users` run. No mail is sent.",
	Example: `{"email": "grace@example.com", "password": "correct horse battery", "is_confirmed": true}`,
}

// endUserBody describes a new or changed end user.
type endUserBody struct {
	Email            *string         `json:"email,omitempty" maxLength:"254"`
	Phone            *string         `json:"phone,omitempty" maxLength:"32" doc:"Number by E.164, such as +491701234567."`
	Password         *string         `json:"password,omitempty" maxLength:"1024"`
	IsConfirmed      *bool           `json:"is_confirmed,omitempty" doc:"Whether the address counts as confirmed."`
	IsPhoneConfirmed *bool           `json:"is_phone_confirmed,omitempty" doc:"Whether the number counts as confirmed."`
	AppMetadata      *jsontext.Value `json:"app_metadata,omitempty" doc:"Members to set. null removes one."`
	UserMetadata     *jsontext.Value `json:"user_metadata,omitempty" doc:"Members to set. null removes one."`
	BanDuration      *string         `json:"ban_duration,omitempty" maxLength:"20" doc:"Duration in which the user can't sign in, such as 24h. none lifts it."`
}

func (b endUserBody) update() enduser.AdminUpdate {
	u := enduser.AdminUpdate{Email: b.Email, Phone: b.Phone, Password: b.Password, EmailConfirm: b.IsConfirmed,
		PhoneConfirm: b.IsPhoneConfirmed,
		BanDuration:  b.BanDuration}
	if b.AppMetadata != nil {
		u.AppMetadata = []byte(*b.AppMetadata)
	}
	if b.UserMetadata != nil {
		u.UserMetadata = []byte(*b.UserMetadata)
	}

	return u
}

type createEndUserInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Body    endUserBody
}

func (s *Server) createEndUser(
	ctx context.Context, p *projectdb.Project, in *createEndUserInput,
) (enduser.Account, error) {
	d, err := s.EndUsers.Open(ctx, p.UUID)
	if err != nil {
		return enduser.Account{}, err
	}

	u, err := d.CreateUser(ctx, in.Body.update(), endUserClient(ctx))
	return u.Account(), asRule(err)
}

var listEndUsers = operation.Operation{
	ID: "listEndUsers", Method: "GET", Path: "/projects/{projectUUID}/end-users", Summary: "List end users",
	Access: operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
}

type listEndUsersInput struct {
	operation.PageQuery
	Sort    string    `query:"sort" enum:"createdAt,email,lastSignInAt" default:"createdAt"`
	Search  string    `query:"search" maxLength:"254" doc:"Part of the address or the number, or the UUID."`
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
}

func (s *Server) listEndUsers(
	ctx context.Context, p *projectdb.Project, in *listEndUsersInput,
) (operation.Answer[[]enduser.Account, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	d, err := s.EndUsers.Open(ctx, p.UUID)
	if err != nil {
		return operation.ListOf([]enduser.Account{}, page, 0), err
	}

	users, total, err := d.ListUsers(ctx, enduser.Filter{Search: in.Search}, page)
	accounts := make([]enduser.Account, len(users))
	for i, u := range users {
		accounts[i] = u.Account()
	}

	return operation.ListOf(accounts, page, total), err
}

type endUserInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	UUID    uuid.UUID `path:"endUserUUID" format:"uuid"`
}

var getEndUser = operation.Operation{
	ID: "getEndUser", Method: "GET", Path: "/projects/{projectUUID}/end-users/{endUserUUID}",
	Summary: "Get an end user",
	Access:  operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
}

func (s *Server) getEndUser(ctx context.Context, p *projectdb.Project, in *endUserInput) (enduser.Account, error) {
	d, err := s.EndUsers.Open(ctx, p.UUID)
	if err != nil {
		return enduser.Account{}, err
	}

	u, err := d.GetUser(ctx, in.UUID)
	return u.Account(), asRule(err)
}

var updateEndUser = operation.Operation{
	ID: "updateEndUser", Method: "PUT", Path: "/projects/{projectUUID}/end-users/{endUserUUID}",
	Summary: "Update an end user",
	Access:  operation.ProjectInPath(account.Admin), Errors: []int{400, 401, 403, 404, 422, 500},
	Notes:   "Omitted members stay unchanged. A new password ends the user's sessions, a ban prevents their next refresh.",
	Example: `{"ban_duration": "24h"}`,
}

type updateEndUserInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	UUID    uuid.UUID `path:"endUserUUID" format:"uuid"`
	Body    endUserBody
}

func (s *Server) findEndUser(ctx context.Context, p *projectdb.Project, in *updateEndUserInput) error {
	_, err := s.getEndUser(ctx, p, &endUserInput{UUID: in.UUID})
	return err
}

func (s *Server) updateEndUser(
	ctx context.Context, p *projectdb.Project, in *updateEndUserInput,
) (enduser.Account, error) {
	if operation.IsEmpty(in.Body) {
		return enduser.Account{}, cmp.Or[error](s.findEndUser(ctx, p, in), fault.NothingToChange())
	}

	d, err := s.EndUsers.Open(ctx, p.UUID)
	if err != nil {
		return enduser.Account{}, err
	}

	u, err := d.UpdateUser(ctx, in.UUID, in.Body.update(), endUserClient(ctx))
	return u.Account(), asRule(err)
}

var deleteEndUser = operation.Operation{
	ID: "deleteEndUser", Method: "DELETE", Path: "/projects/{projectUUID}/end-users/{endUserUUID}",
	Summary: "Delete an end user",
	Access:  operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
	Notes: "Rows of the project that refer to the user go with it, if their foreign key says so.",
}

func (s *Server) deleteEndUser(ctx context.Context, p *projectdb.Project, in *endUserInput) (enduser.Account, error) {
	d, err := s.EndUsers.Open(ctx, p.UUID)
	if err != nil {
		return enduser.Account{}, err
	}

	u, err := d.DeleteUser(ctx, in.UUID, false, endUserClient(ctx))
	return u.Account(), asRule(err)
}

var deleteEndUserSessions = operation.Operation{
	ID: "deleteEndUserSessions", Method: "DELETE", Path: "/projects/{projectUUID}/end-users/{endUserUUID}/sessions",
	Summary: "End an end user's sessions",
	Access:  operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
	Notes: "The rows API accepts the user's access tokens to their end.",
}

// endedSessions counts the sessions that an operation has ended.
type endedSessions struct {
	Sessions int64 `json:"sessions"`
}

func (s *Server) deleteEndUserSessions(
	ctx context.Context, p *projectdb.Project, in *endUserInput,
) (endedSessions, error) {
	d, err := s.EndUsers.Open(ctx, p.UUID)
	if err != nil {
		return endedSessions{}, err
	}

	n, err := d.EndSessions(ctx, in.UUID, endUserClient(ctx))
	return endedSessions{n}, asRule(err)
}

var createEndUserToken = operation.Operation{
	ID: "createEndUserToken", Method: "POST", Path: "/projects/{projectUUID}/end-user-tokens",
	Summary: "Create a token to see what an end user sees",
	Access:  operation.ProjectInPath(account.Developer), Errors: []int{400, 401, 403, 404, 422, 500},
	Notes: "The token is valid for five minutes, for the rows API and files, with the claims of the user's own tokens. " +
		"It has no session, so it can neither be refreshed nor change the account. The audit log has who made it, for whom. " +
		"Your own token with the header `X-Socle-As: user:UUID` needs no such token.",
	Example: `{"user": "grace@example.com"}`,
}

type createEndUserTokenInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Body    struct {
		User string `json:"user" minLength:"1" maxLength:"320" doc:"UUID or e-mail address of the end user."`
	}
}

// endUserToken describes a token; the token itself is metadata.
type endUserToken struct {
	UserUUID  uuid.UUID `json:"userUuid"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// endUserTokenMetadata has the token, which is shown once.
type endUserTokenMetadata struct {
	Token string `json:"token"`
}

func (s *Server) createEndUserToken(
	ctx context.Context, p *projectdb.Project, in *createEndUserTokenInput,
) (operation.Answer[endUserToken, endUserTokenMetadata], error) {
	d, err := s.EndUsers.Open(ctx, p.UUID)
	if err != nil {
		return operation.Answer[endUserToken, endUserTokenMetadata]{}, err
	}

	t, err := d.Impersonate(ctx, in.Body.User, endUserClient(ctx))
	return operation.Secret(endUserToken{t.UserUUID, t.ExpiresAt}, endUserTokenMetadata{t.Token}), err
}
