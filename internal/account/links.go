package account

import (
	"context"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

// Link purposes. A link is valid for its own purpose only.
const (
	PasswordReset = "password reset"
	EmailChange   = "email change"
	Invitation    = "invitation"
	Recipient     = "form recipient"
)

// Link is a single-use link in a mail. Package token makes its token from its purpose and UUID.
type Link struct {
	UUID        uuid.UUID
	Purpose     string
	UserUUID    uuid.NullUUID // account concerned; null: none yet
	SubjectUUID uuid.NullUUID // subject beside the account, such as an invitation
	Email       string        // recipient
	ExpiresAt   time.Time
	UsedAt      *time.Time
}

// good reports whether the link is unused and not expired.
func (l Link) good(now time.Time) bool { return l.UsedAt == nil && now.Before(l.ExpiresAt) }

const linkColumns = ` uuid, purpose, user_uuid, subject_uuid, email, expires_at, used_at `

// NewLink holds a new link's parameters.
type NewLink struct {
	Purpose       string
	User, Subject uuid.NullUUID
	Email         string
	TTL           time.Duration
}

// CreateLink creates a link. It deletes earlier links with the same user, purpose and subject.
func (s *Service) CreateLink(ctx context.Context, n NewLink) (Link, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Link{}, err
	}

	return pg.One[Link](ctx, s.q, `
		with before as (delete from platform.links
			where user_uuid = @user and purpose = @purpose and subject_uuid is not distinct from @subject)
		insert into platform.links (uuid, purpose, user_uuid, subject_uuid, email, expires_at)
		values (@id, @purpose, @user, @subject, @email, now() + @life::interval)
		returning`+linkColumns,
		pgx.StrictNamedArgs{
			"id": id, "purpose": n.Purpose, "user": n.User, "subject": n.Subject, "email": n.Email, "life": n.TTL,
		})
}

// getLink returns a link, used or not. It fails with NotFound if the link is unknown or deleted.
func (s *Service) getLink(ctx context.Context, id uuid.UUID) (Link, error) {
	return pg.One[Link](ctx, s.q, `select`+linkColumns+`from platform.links where uuid = @id`,
		pgx.StrictNamedArgs{"id": id})
}

// LinkPreview describes the account behind a link, before the link is used.
type LinkPreview struct {
	Username string
	Email    string // address of the account, or the one that the link confirms
}

// PreviewLink returns the preview of a link to set a new password or to change an address. It fails
// with Unprocessable on the field token as [Service.UseLink] does.
func (s *Service) PreviewLink(ctx context.Context, purpose, linkToken string) (LinkPreview, error) {
	link, user, err := s.linkedUser(ctx, purpose, linkToken)
	return LinkPreview{user.Username, link.Email}, err
}

// linkedUser returns a link that can be used and the user whose account it changes.
func (s *Service) linkedUser(ctx context.Context, purpose, linkToken string) (Link, User, error) {
	link, err := s.findLink(ctx, purpose, linkToken)
	if err != nil {
		return link, User{}, err
	}

	user, err := s.GetUser(ctx, link.UserUUID.UUID)
	if fault.Is(err, fault.NotFound) {
		err = InvalidLink()
	}

	return link, user, err
}

// findLink returns a token's link if it can be used.
func (s *Service) findLink(ctx context.Context, purpose, linkToken string) (Link, error) {
	id, ok := token.ParseLink(s.LinkKey, purpose, linkToken)
	if !ok {
		return Link{}, InvalidLink()
	}

	link, err := s.getLink(ctx, id)
	if fault.Is(err, fault.NotFound) || (err == nil && !link.good(time.Now())) {
		return link, InvalidLink()
	}

	return link, err
}

// pages are link paths by purpose, relative to the public URL.
var pages = map[string]string{
	PasswordReset: "/reset-password",
	EmailChange:   "/confirm-email", Invitation: "/accept-invitation", Recipient: "/confirm-recipient",
}

// LinkURL returns the URL of a link for its mail, or "" if the link was used, has expired, or was
// deleted.
func (s *Service) LinkURL(ctx context.Context, id uuid.UUID) (string, error) {
	link, err := s.getLink(ctx, id)
	if fault.Is(err, fault.NotFound) || (err == nil && !link.good(time.Now())) {
		return "", nil
	}
	if err != nil {
		return "", err
	}

	return s.PublicURL + pages[link.Purpose] + "?token=" +
		url.QueryEscape(token.Link(s.LinkKey, link.Purpose, link.UUID)), nil
}

// UseLink marks a link as used. One of several concurrent calls succeeds. It fails with
// Unprocessable on the field token if the link was used, has expired, or was deleted. Call it in
// the transaction of the change that the link authorizes.
func (s *Service) UseLink(ctx context.Context, purpose string, id uuid.UUID) (Link, error) {
	link, err := pg.One[Link](ctx, s.q, `
		update platform.links set used_at = now()
		where uuid = @id and purpose = @purpose and used_at is null and expires_at > now()
		returning`+linkColumns, pgx.StrictNamedArgs{"id": id, "purpose": purpose})
	if fault.Is(err, fault.NotFound) {
		return link, InvalidLink()
	}

	return link, err
}

// InvalidLink returns the failure for an invalid link. It is the same for forged, used, expired and
// deleted ones.
func InvalidLink() error {
	return fault.OnField(fault.Unprocessable, "token", "invalid_token", "is invalid, expired or already used")
}

// deleteLinks deletes all links about a subject.
func (s *Service) deleteLinks(ctx context.Context, subject uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q, `delete from platform.links where subject_uuid = @subject`,
		pgx.StrictNamedArgs{"subject": subject})
	return err
}

// voidCredentialLinks deletes the links that could change a user's password or address.
func (s *Service) voidCredentialLinks(ctx context.Context, user uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q,
		`delete from platform.links where user_uuid = @user and purpose in ('password reset', 'email change')`,
		pgx.StrictNamedArgs{"user": user})
	return err
}

// deleteExpiredLinks deletes links that expired at least 7 days ago.
func (s *Service) deleteExpiredLinks(ctx context.Context) error {
	_, err := pg.Exec(ctx, s.q, `delete from platform.links where expires_at < now() - interval '7 days'`)
	return err
}

func someUUID(id uuid.UUID) uuid.NullUUID { return uuid.NullUUID{UUID: id, Valid: true} }
