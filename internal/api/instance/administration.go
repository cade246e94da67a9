package instance

import (
	"context"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/platform"
)

func (s *Server) registerAdministration(p *operation.Pipeline) {
	operation.Handle(p, listUsers, s.listUsers, nil)
	operation.Handle(p, getUser, s.getUser, nil)
	operation.Handle(p, updateStanding, s.updateStanding, s.findUser)
	operation.Handle(p, resetSecondFactor, s.resetSecondFactor, nil)
	operation.Handle(p, listSettings, s.listSettings, nil)
	operation.Handle(p, updateSetting, s.updateSetting, s.findSetting)
	operation.Handle(p, resetSetting, s.resetSetting, nil)
	operation.Handle(p, listEnvironment, s.listEnvironment, nil)
}

var listUsers = operation.Operation{
	ID: "listUsers", Method: "GET", Path: "/admin/users", Summary: "List all users",
	Access: operation.Administrator, Errors: []int{400, 401, 403, 500},
}

type listUsersInput struct {
	operation.PageQuery
	Sort   string `query:"sort" enum:"username,email,createdAt,updatedAt" default:"createdAt"`
	Search string `query:"search" maxLength:"254" doc:"Part of a user name or e-mail address, or a complete UUID."`
	Status string `query:"status" enum:"active,suspended"`
}

func (s *Server) listUsers(
	ctx context.Context, in *listUsersInput,
) (operation.Answer[[]account.User, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	users, total, err := s.Accounts.ListUsers(ctx, account.UserFilter{Search: in.Search, Status: in.Status}, page)
	return operation.ListOf(users, page, total), err
}

type userInput struct {
	UUID uuid.UUID `path:"userUUID" format:"uuid"`
}

var getUser = operation.Operation{
	ID: "getUser", Method: "GET", Path: "/admin/users/{userUUID}", Summary: "Get a user",
	Access: operation.Administrator, Errors: operation.RestrictedErrors,
}

func (s *Server) getUser(ctx context.Context, in *userInput) (account.User, error) {
	return s.Accounts.GetUser(ctx, in.UUID)
}

var updateStanding = operation.Operation{
	ID: "updateStanding", Method: "PUT",
	Path: "/admin/users/{userUUID}", Summary: "Update a user's status or administrator right",
	Access: operation.Administrator, Errors: []int{400, 401, 403, 404, 409, 422, 500},
	Notes: "Suspending a user ends their sessions: the next request with one of their tokens is refused. The last " +
		"active administrator of the instance cannot be suspended or demoted: 409, `last_administrator`. `PUT " +
		"/users/{userUUID}` changes names, addresses and passwords.",
	Example: `{"status": "suspended"}`,
}

type updateStandingInput struct {
	UUID uuid.UUID `path:"userUUID" format:"uuid"`
	Body struct {
		Status          *string `json:"status,omitempty" enum:"active,suspended"`
		IsAdministrator *bool   `json:"is_administrator,omitempty" doc:"Whether the user administers the instance."`
	}
}

func (s *Server) findUser(ctx context.Context, in *updateStandingInput) error {
	_, err := s.Accounts.GetUser(ctx, in.UUID)
	return err
}

func (s *Server) updateStanding(ctx context.Context, in *updateStandingInput) (account.User, error) {
	return s.Accounts.UpdateStanding(ctx, in.UUID, account.Standing(in.Body))
}

var resetSecondFactor = operation.Operation{
	ID: "resetSecondFactor", Method: "DELETE",
	Path: "/admin/users/{userUUID}/totp", Summary: "Remove a user's second factor",
	Access: operation.Administrator, Errors: operation.RestrictedErrors,
	Notes: "For users who have lost their second factor and their recovery codes: verify their identity first. " +
		"Ends the user's sessions and notifies them by mail. Callers cannot remove their own second factor this " +
		"way: 403, `own_account`.",
}

func (s *Server) resetSecondFactor(ctx context.Context, in *userInput) (account.User, error) {
	return s.Accounts.ResetSecondFactor(ctx, operation.Caller(ctx), in.UUID)
}

var listSettings = operation.Operation{
	ID: "listSettings", Method: "GET", Path: "/admin/settings", Summary: "List instance settings",
	Access: operation.Administrator, Errors: []int{401, 403, 500},
	Notes: "Returns all settings at once, in the order of their declaration.",
}

func (s *Server) listSettings(ctx context.Context, _ *struct{}) ([]platform.Setting, error) {
	return s.Platform.ListSettings(ctx)
}

var updateSetting = operation.Operation{
	ID: "updateSetting", Method: "PUT", Path: "/admin/settings/{settingName}", Summary: "Update an instance setting",
	Access: operation.Administrator, Errors: []int{400, 401, 403, 404, 422, 500},
	Notes:   "Takes effect on every server with the next request, and overrides the server's environment.",
	Example: `{"value": true}`,
}

type updateSettingInput struct {
	Name string `path:"settingName" maxLength:"100"`
	Body struct {
		Value settingValue `json:"value"`
	}
}

// settingValue is a JSON value as text. The setting's declaration defines the valid values.
type settingValue string

// UnmarshalJSON stores the text.
func (v *settingValue) UnmarshalJSON(text []byte) error {
	*v = settingValue(text)
	return nil
}

// Schema returns the schema for a boolean or an integer.
func (settingValue) Schema(operation.Registry) *operation.Schema {
	return &operation.Schema{Description: "A boolean or an integer, according to the setting's `type`.",
		OneOf: []*operation.Schema{{Type: operation.TypeBoolean}, {Type: operation.TypeInteger}}}
}

func (s *Server) findSetting(_ context.Context, in *updateSettingInput) error {
	return platform.CheckSetting(in.Name)
}

func (s *Server) updateSetting(ctx context.Context, in *updateSettingInput) (platform.Setting, error) {
	return s.Platform.UpdateSetting(ctx, operation.Caller(ctx).User, in.Name, string(in.Body.Value))
}

var resetSetting = operation.Operation{
	ID: "resetSetting", Method: "DELETE",
	Path: "/admin/settings/{settingName}", Summary: "Reset an instance setting to its default",
	Access: operation.Administrator, Errors: operation.RestrictedErrors,
}

type resetSettingInput struct {
	Name string `path:"settingName" maxLength:"100"`
}

func (s *Server) resetSetting(ctx context.Context, in *resetSettingInput) (platform.Setting, error) {
	return s.Platform.ResetSetting(ctx, in.Name)
}

var listEnvironment = operation.Operation{
	ID: "listEnvironment", Method: "GET",
	Path: "/admin/environment", Summary: "List the server's start configuration",
	Access: operation.Administrator, Errors: []int{401, 403, 500},
	Notes: "These settings can be changed only where the server is started. Secrets are redacted.",
}

func (s *Server) listEnvironment(context.Context, *struct{}) ([]config.Shown, error) {
	return s.Settings, nil
}
