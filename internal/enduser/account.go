package enduser

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Account is an end user, as the platform's API shows it.
type Account struct {
	UUID             uuid.UUID       `json:"uuid"`
	Email            string          `json:"email"`
	Phone            string          `json:"phone" doc:"Digits of the number by E.164, without plus."`
	Role             string          `json:"role" doc:"Role in the rows API."`
	IsAnonymous      bool            `json:"isAnonymous"`
	HasSecondFactor  bool            `json:"hasSecondFactor"`
	AppMetadata      json.RawMessage `json:"appMetadata" doc:"Set by the project's administrators."`
	UserMetadata     json.RawMessage `json:"userMetadata" doc:"Set by the user."`
	EmailConfirmedAt *time.Time      `json:"emailConfirmedAt"`
	PhoneConfirmedAt *time.Time      `json:"phoneConfirmedAt"`
	InvitedAt        *time.Time      `json:"invitedAt"`
	LastSignInAt     *time.Time      `json:"lastSignInAt"`
	BannedUntil      *time.Time      `json:"bannedUntil"`
	DeletedAt        *time.Time      `json:"deletedAt" doc:"Of a user whose row is kept for references."`
	CreatedAt        time.Time       `json:"createdAt"`
	UpdatedAt        time.Time       `json:"updatedAt"`
}

// Account returns the user as the platform's API shows it.
func (u User) Account() Account {
	return Account{UUID: u.ID, Email: u.Email, Phone: u.Phone, Role: u.Role, IsAnonymous: u.IsAnonymous,
		HasSecondFactor: hasVerifiedFactor(u),
		AppMetadata:     u.AppMetadata, UserMetadata: u.UserMetadata, EmailConfirmedAt: u.EmailConfirmedAt,
		PhoneConfirmedAt: u.PhoneConfirmedAt,
		InvitedAt:        u.InvitedAt,
		LastSignInAt:     u.LastSignInAt, BannedUntil: u.BannedUntil, DeletedAt: u.DeletedAt, CreatedAt: u.CreatedAt,
		UpdatedAt: u.UpdatedAt}
}
