package platform

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/pg"
)

// The purposes of links. A link for one is worth nothing for another.
const (
	PasswordReset = "password reset"
	EmailChange   = "email change"
	Invitation    = "invitation"
)

// Link is a link in a mail, which works once. Its token is made by package token from its purpose and UUID.
type Link struct {
	UUID        uuid.UUID
	Purpose     string
	UserUUID    uuid.NullUUID // whose account it is about, if there is one yet
	SubjectUUID uuid.NullUUID // what else it is about
	Email       string        // where it was sent
	ExpiresAt   time.Time
	UsedAt      *time.Time
}

// Good reports whether the link can be used.
func (l Link) Good(now time.Time) bool { return l.UsedAt == nil && now.Before(l.ExpiresAt) }

const linkColumns = ` uuid, purpose, user_uuid, subject_uuid, email, expires_at, used_at `

// NewLink is what a link is made of.
type NewLink struct {
	Purpose       string
	User, Subject uuid.NullUUID
	Email         string
	Life          time.Duration
}

// CreateLink notes a link. Those of the same user and purpose, about the same subject, that were sent before are void from now on.
func (s *Store) CreateLink(ctx context.Context, n NewLink) (Link, error) {
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
			"id": id, "purpose": n.Purpose, "user": n.User, "subject": n.Subject, "email": n.Email, "life": n.Life,
		})
}

// GetLink returns a link, used or not. It fails with NotFound if there is none, or not any more.
func (s *Store) GetLink(ctx context.Context, id uuid.UUID) (Link, error) {
	return pg.One[Link](ctx, s.q, `select`+linkColumns+`from platform.links where uuid = @id`,
		pgx.StrictNamedArgs{"id": id})
}

// UseLink uses a link up; of those who try at the same moment one can. It fails with Unprocessable on the field token if the link was
// used, has expired, or is void. Call it in the transaction that does what the link is for.
func (s *Store) UseLink(ctx context.Context, purpose string, id uuid.UUID) (Link, error) {
	link, err := pg.One[Link](ctx, s.q, `
		update platform.links set used_at = now()
		where uuid = @id and purpose = @purpose and used_at is null and expires_at > now()
		returning`+linkColumns, pgx.StrictNamedArgs{"id": id, "purpose": purpose})
	if fault.Is(err, fault.NotFound) {
		return link, BadLink()
	}

	return link, err
}

// BadLink returns the failure of a link that opens nothing: forged, used, expired and void ones are told apart by nobody.
func BadLink() error {
	return fault.OnField(fault.Unprocessable, "token", "invalid_token", "is of no link that can still be used")
}

// VoidLinks makes all links about a subject void.
func (s *Store) VoidLinks(ctx context.Context, subject uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q, `delete from platform.links where subject_uuid = @subject`,
		pgx.StrictNamedArgs{"subject": subject})
	return err
}

// voidLinksOf makes the links void by which a user's password or address could be changed.
func (s *Store) voidLinksOf(ctx context.Context, user uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q,
		`delete from platform.links where user_uuid = @user and purpose in ('password reset', 'email change')`,
		pgx.StrictNamedArgs{"user": user})
	return err
}

// ForgetLinks removes links that expired some time ago.
func (s *Store) ForgetLinks(ctx context.Context) error {
	_, err := pg.Exec(ctx, s.q, `delete from platform.links where expires_at < now() - interval '7 days'`)
	return err
}
