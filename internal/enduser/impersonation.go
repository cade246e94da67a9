package enduser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/address"
	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/hook"
	"github.com/socle-dev/socle/internal/httpx"
)

// impersonationTime is the lifetime of a token for a project member.
const impersonationTime = 5 * time.Minute

// Impersonation is a token with which a project member sees what a user sees.
type Impersonation struct {
	UserUUID  uuid.UUID
	Token     string
	ExpiresAt time.Time
}

// Impersonate returns a user's access token, whom a UUID or an address names, for a project member.
// It has the same claims as the user's tokens but no session: the rows API and files accept it,
// account changes and refreshes do not. The audit log has an entry before the token exists. It
// fails with NotFound for an unknown user.
func (d *Directory) Impersonate(ctx context.Context, who string, c Client) (Impersonation, error) {
	u, err := d.findUser(ctx, who)
	if err != nil {
		return Impersonation{}, err
	}

	audit.CreatedUUID(ctx, u.ID)
	if err := d.db.InTx(ctx, func(pgx.Tx) error { return nil }); err != nil {
		return Impersonation{}, err
	}

	body, end, err := d.impersonationClaims(ctx, u, c)
	if err != nil {
		return Impersonation{}, err
	}

	text, err := d.keys.signingKey.SignJWT(body)
	return Impersonation{UserUUID: u.ID, Token: text, ExpiresAt: time.Unix(end, 0).UTC()}, err
}

// impersonationClaims returns the claims of a user's token without a session, with their expiry.
func (d *Directory) impersonationClaims(ctx context.Context, u User, c Client) (body []byte, expires int64, err error) {
	now := time.Now()
	return d.customClaims(ctx, claims{Issuer: d.Issuer(), Subject: u.ID, Audience: u.Aud,
		ExpiresAt: now.Add(impersonationTime).Unix(), IssuedAt: now.Unix(), Email: u.Email, Phone: u.Phone,
		AppMetadata: u.AppMetadata, UserMetadata: u.UserMetadata, Role: u.Role, AAL: "aal1", AMR: []amr{},
		IsAnonymous: u.IsAnonymous}, "impersonation", c)
}

// ImpersonationClaims returns the claims that a token of [Directory.Impersonate] has, a JSON
// object. It makes no token and no audit entry. It fails with NotFound for an unknown user, and
// with Forbidden if a hook refuses the user a token.
func (s *Service) ImpersonationClaims(ctx context.Context, project, user uuid.UUID) ([]byte, error) {
	d, err := s.Open(ctx, project)
	if err != nil {
		return nil, err
	}

	u, err := d.findUser(ctx, user.String())
	if err != nil {
		return nil, err
	}

	return d.memberClaims(ctx, u)
}

// memberClaims returns the claims of [Service.ImpersonationClaims].
func (d *Directory) memberClaims(ctx context.Context, u User) ([]byte, error) {
	request := httpx.From(ctx)
	body, _, err := d.impersonationClaims(ctx, u, Client{Address: request.Client,
		Network: httpx.Network(request.Client), Agent: request.UserAgent})
	if rejection, ok := errors.AsType[*hook.Rejection](err); ok {
		return nil, fault.New(fault.Forbidden, "the hook custom_access_token refuses the end user a token: %s",
			rejection.Message).WithCause(err)
	}

	return body, err
}

// asUserPrefix precedes the UUID or address of an end user.
const asUserPrefix = "user:"

// Caller returns the application's caller that a project member names: anon, authenticated, or
// user: and the UUID or address of an end user. The actor of an end user has the claims of
// [Service.ImpersonationClaims]; the audit entry names it. Caller fails with Unprocessable on field
// for other texts, for a user that does not exist, and for one with another role than these.
func (s *Service) Caller(ctx context.Context, project uuid.UUID, field, as string) (actor.Actor, error) {
	who, isUser := strings.CutPrefix(as, asUserPrefix)
	switch {
	case slices.Contains(callerRoles, as):
		audit.ActAs(ctx, as)
		return actor.Actor{Role: as, Member: true}, nil
	case !isUser:
		return actor.Actor{}, fault.OnField(fault.Unprocessable, field, "invalid_format",
			"must be anon, authenticated, or user: and the UUID or address of an end user")
	}

	d, err := s.Open(ctx, project)
	if err != nil {
		return actor.Actor{}, err
	}

	u, err := d.findUser(ctx, who)
	switch {
	case fault.Is(err, fault.NotFound):
		return actor.Actor{}, fault.OnField(fault.Unprocessable, field, "unknown_end_user",
			"names no end user of the project").WithCause(err)
	case err != nil:
		return actor.Actor{}, err
	}

	audit.ActAs(ctx, asUserPrefix+u.ID.String())

	claims, err := d.memberClaims(ctx, u)
	if err != nil {
		return actor.Actor{}, err
	}

	var assumed struct {
		Role string `json:"role"`
	}
	if err := json.Unmarshal(claims, &assumed); err != nil {
		return actor.Actor{}, fmt.Errorf("claims of an end user: %w", err)
	}
	if !slices.Contains(callerRoles, assumed.Role) {
		return actor.Actor{}, fault.OnField(fault.Unprocessable, field, "not_allowed",
			"names an end user with the role %q: SQL runs as anon and authenticated only", assumed.Role)
	}

	return actor.Actor{Role: assumed.Role, Claims: claims, Subject: u.ID.String(), Member: true}, nil
}

// callerRoles are the roles of [Service.Caller].
var callerRoles = []string{"anon", "authenticated"}

// findUser returns the user that a UUID or an address names.
func (d *Directory) findUser(ctx context.Context, who string) (User, error) {
	var u User
	id, err := uuid.Parse(who)
	if err == nil {
		u, err = userByID(ctx, d.Rows(), id)
	} else {
		u, err = userByEmail(ctx, d.Rows(), address.Canonical(who))
	}

	if err == nil && u.DeletedAt != nil {
		err = errUserNotFound()
	}
	if fault.Is(err, fault.NotFound) {
		err = fault.New(fault.NotFound, "there is no end user %q", who)
	}

	return u, err
}
