package endusers

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
)

var importEndUsers = operation.Operation{
	ID: "importEndUsers", Method: "POST", Path: "/projects/{projectUUID}/end-users/import", Summary: "Import end users",
	Access: operation.ProjectInPath(account.Admin), Errors: []int{400, 401, 403, 422, 500},
	Notes: "Users keep their UUIDs and password hashes (argon2id, bcrypt, `$fbscrypt$` of Firebase), which are replaced at the next " +
		"log-in. A known UUID stays as it is, so an import can be repeated. The result has an outcome for each user, in order: one " +
		"that fails keeps no other from being created. Triggers of the project on `auth.users` run. No mail is sent.",
	Example: `{"users": [{"uuid": "5e1f4c1c-3f0e-4a4b-9a51-0d7f6f6b2f10", "email": "grace@example.com", "email_confirmed_at": "2026-01-31T12:00:00Z"}]}`,
}

// importedUser describes a user from another system.
type importedUser struct {
	UUID             uuid.UUID          `json:"uuid" format:"uuid"`
	Email            string             `json:"email,omitempty" maxLength:"254"`
	Phone            string             `json:"phone,omitempty" maxLength:"32"`
	PasswordHash     string             `json:"password_hash,omitempty" maxLength:"1024"`
	Role             string             `json:"role,omitempty" maxLength:"63" doc:"Role in the rows API. Default: authenticated."`
	EmailConfirmedAt *time.Time         `json:"email_confirmed_at,omitempty"`
	PhoneConfirmedAt *time.Time         `json:"phone_confirmed_at,omitempty"`
	InvitedAt        *time.Time         `json:"invited_at,omitempty"`
	LastSignInAt     *time.Time         `json:"last_sign_in_at,omitempty"`
	BannedUntil      *time.Time         `json:"banned_until,omitempty"`
	CreatedAt        *time.Time         `json:"created_at,omitempty" doc:"Default: now."`
	IsAnonymous      bool               `json:"is_anonymous,omitempty"`
	AppMetadata      *jsontext.Value    `json:"app_metadata,omitempty"`
	UserMetadata     *jsontext.Value    `json:"user_metadata,omitempty"`
	Identities       []importedIdentity `json:"identities,omitempty" maxItems:"20" doc:"Accounts with other providers."`
}

// importedIdentity describes an account at a provider.
type importedIdentity struct {
	Provider   string          `json:"provider" minLength:"1" maxLength:"63"`
	ProviderID string          `json:"provider_id" minLength:"1" maxLength:"255"`
	Data       *jsontext.Value `json:"identity_data,omitempty"`
}

func (u importedUser) user() enduser.UserImport {
	in := enduser.UserImport{ID: u.UUID, Email: u.Email, Phone: u.Phone, PasswordHash: u.PasswordHash, Role: u.Role,
		EmailConfirmedAt: u.EmailConfirmedAt, PhoneConfirmedAt: u.PhoneConfirmedAt, InvitedAt: u.InvitedAt,
		LastSignInAt: u.LastSignInAt,
		BannedUntil:  u.BannedUntil, CreatedAt: u.CreatedAt, IsAnonymous: u.IsAnonymous,
		AppMetadata: rawOf(u.AppMetadata), UserMetadata: rawOf(u.UserMetadata)}
	for _, i := range u.Identities {
		in.Identities = append(in.Identities, enduser.IdentityImport{Provider: i.Provider, ProviderID: i.ProviderID,
			Data: rawOf(i.Data)})
	}

	return in
}

// rawOf returns an optional member's text, nil if it is absent.
func rawOf(v *jsontext.Value) []byte {
	if v == nil {
		return nil
	}
	return []byte(*v)
}

type importEndUsersInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Body    struct {
		Users []importedUser `json:"users" minItems:"1" maxItems:"100"`
	}
}

func (s *Server) importEndUsers(
	ctx context.Context, p *projectdb.Project, in *importEndUsersInput,
) ([]enduser.UserImported, error) {
	d, err := s.EndUsers.Open(ctx, p.UUID)
	if err != nil {
		return nil, err
	}

	users := make([]enduser.UserImport, len(in.Body.Users))
	for i, u := range in.Body.Users {
		users[i] = u.user()
	}

	return d.ImportUsers(ctx, users, endUserClient(ctx))
}
