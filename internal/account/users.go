package account

import (
	"context"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/address"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// User is a person with an account. The password hash is not part of it.
type User struct {
	UUID             uuid.UUID `json:"uuid"`
	Username         string    `json:"username"`
	Email            string    `json:"email"`
	Bio              string    `json:"bio"`
	Status           string    `json:"status" enum:"active,suspended"`
	RoleID           Role      `json:"roleId" minimum:"1" maximum:"5" doc:"Role in the organization: 1 administrator of the instance, 2 owner, 3 admin, 4 developer, 5 viewer."`
	OrganizationUUID uuid.UUID `json:"organizationUuid" doc:"Home organization of the user, created with the account."`
	CreatedAt        time.Time `json:"createdAt"`
	UpdatedAt        time.Time `json:"updatedAt"`
}

const (
	userColumns = `
	u.uuid, u.username, u.email, u.bio, u.status, u.organization_uuid, u.created_at, u.updated_at,` + homeRole + ` as role_id`

	// homeRole is the role of user u in their home organization.
	homeRole = `
	case when u.is_administrator then 1 else coalesce((select m.role from platform.members m
		where m.organization_uuid = u.organization_uuid and m.user_uuid = u.uuid), 5) end`
)

// Every start of the binary compiles the pattern: with the lengths in it that takes 4 ms.
var usernamePattern = regexp.MustCompile(`^[\p{L}\p{N}_-]+$`)

const minUsername, maxUsername = 3, 100 // characters

// cleanUsername returns a user name in its stored form. It fails with Unprocessable on the field
// username.
func cleanUsername(s string) (string, error) {
	s = strings.TrimSpace(s)
	n := utf8.RuneCountInString(s)
	if n < minUsername || n > maxUsername || !usernamePattern.MatchString(s) {
		return "", fault.OnField(fault.Unprocessable, "username", "invalid_format",
			"must be 3 to 100 letters, digits, _ or -")
	}

	return s, nil
}

// cleanEmail returns an address in its stored form, as it was typed. It fails with Unprocessable on
// the field email.
func cleanEmail(s string) (string, error) {
	if _, ok := address.Clean(s); !ok {
		return "", fault.OnField(fault.Unprocessable, "email", "invalid_format",
			"must be an e-mail address of at most %d characters", address.Max)
	}

	return strings.TrimSpace(s), nil
}

// GetUser returns a user. It fails with NotFound for an unknown user.
func (s *Service) GetUser(ctx context.Context, id uuid.UUID) (User, error) {
	return pg.One[User](ctx, s.q, `select `+userColumns+` from platform.users u where u.uuid = @id`,
		pgx.StrictNamedArgs{"id": id})
}

// CurrentUser returns a signed-in user. It fails with Unauthenticated if the user was deleted
// since.
func (s *Service) CurrentUser(ctx context.Context, id uuid.UUID) (User, error) {
	user, err := s.GetUser(ctx, id)
	if fault.Is(err, fault.NotFound) {
		err = errSessionEnded()
	}

	return user, err
}

// UserUpdate changes a user. Nil fields are left unchanged.
type UserUpdate struct{ Username, Email, Password, Bio *string }

// CheckUserUpdate fails with Unauthenticated if the actor may not change a user: for another user
// and for an unknown one alike, unless the actor is an administrator.
func (s *Service) CheckUserUpdate(ctx context.Context, actor Caller, id uuid.UUID) error {
	if actor.User == id {
		return nil
	}

	other := fault.New(fault.Unauthenticated, "you can update only your own user").WithCode("not_yourself")
	if !actor.Administrator {
		return other
	}

	_, err := s.GetUser(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return other
	}

	return err
}

// lockUser locks the row of a user until the end of the transaction, so that concurrent
// transactions count the user's rows one after the other.
func (s *Service) lockUser(ctx context.Context, user uuid.UUID) error {
	_, err := pg.Exec(ctx, s.q, `select from platform.users where uuid = @user for no key update`,
		pgx.StrictNamedArgs{"user": user})
	return err
}

// UpdateUser changes a user, and mails a notice of a new password or address to the previous
// address. A new password ends all other sessions of the user. It fails as
// [Service.CheckUserUpdate] does, with Unprocessable if the update is empty or a value is invalid,
// and with Conflict on username or email if one is taken.
func (s *Service) UpdateUser(ctx context.Context, actor Caller, id uuid.UUID, u UserUpdate) (User, error) {
	if err := s.CheckUserUpdate(ctx, actor, id); err != nil {
		return User{}, err
	}

	if u == (UserUpdate{}) {
		return User{}, fault.NothingToChange()
	}

	previous, err := s.GetUser(ctx, id)
	if err != nil {
		return User{}, err
	}

	change, err := s.userChange(ctx, previous, u)
	if err != nil {
		return User{}, err
	}

	return pg.InTxValue(ctx, s.inTx, func(tx *Service) (User, error) {
		user, err := tx.changeUser(ctx, id, actor.Session, change)
		if err != nil {
			return User{}, err
		}

		data := map[string]string{"username": user.Username, "email": user.Email}
		if user.Email != previous.Email {
			err = tx.mail(ctx, Mail{Template: "email-changed", To: previous.Email, Data: data})
		}
		if err == nil && change.passwordHash != nil {
			err = tx.mail(ctx, Mail{Template: "password-changed", To: previous.Email, Data: data})
		}

		return user, err
	})
}

// userChange changes a user's row. Nil fields are left unchanged.
type userChange struct{ username, email, bio, passwordHash *string }

// userChange returns the change of a user's row for an update, with a hashed password. It fails
// with Unprocessable on the invalid fields.
func (s *Service) userChange(ctx context.Context, user User, u UserUpdate) (userChange, error) {
	change := userChange{bio: u.Bio}
	var errs []error
	if u.Username != nil {
		name, err := cleanUsername(*u.Username)
		change.username, errs = &name, append(errs, err)
		user.Username = name
	}

	if u.Email != nil {
		email, err := cleanEmail(*u.Email)
		change.email, errs = &email, append(errs, err)
		user.Email = email
	}

	if u.Password != nil {
		errs = append(errs, s.Passwords.Check(*u.Password, user.Email, user.Username))
	}

	if err := fault.Join(errs...); err != nil || u.Password == nil {
		return change, err
	}

	hash, err := s.Passwords.For(fair.Key{Account: user.UUID.String()}).Hash(ctx, *u.Password)
	change.passwordHash = &hash

	return change, err
}

// changeUser changes the row of a user. A new password deletes all sessions of the user except
// keep. A new password or address deletes pending links that could change either. It fails with
// Conflict on username or email if one is taken.
func (s *Service) changeUser(ctx context.Context, id, keep uuid.UUID, u userChange) (User, error) {
	return pg.InTxValue(ctx, s.inTx, func(tx *Service) (User, error) {
		n, err := pg.Exec(ctx, tx.q, `
			update platform.users
			set username = coalesce(@username, username), username_folded = coalesce(@username_folded, username_folded),
			    email = coalesce(@email, email), email_folded = coalesce(@email_folded, email_folded),
			    bio = coalesce(@bio, bio), password_hash = coalesce(@hash, password_hash), updated_at = now()
			where uuid = @id`,
			pgx.StrictNamedArgs{"id": id, "username": u.username, "username_folded": mapped(u.username, fold),
				"email": u.email, "email_folded": mapped(u.email, foldEmail), "bio": u.bio, "hash": u.passwordHash})
		if err != nil {
			return User{}, userConflict(err)
		}

		if n == 0 {
			return User{}, fault.New(fault.NotFound, "there is no such user")
		}

		if u.passwordHash != nil {
			if err := tx.endSessions(ctx, id, keep); err != nil {
				return User{}, err
			}
		}

		if u.passwordHash != nil || u.email != nil {
			if err := tx.voidCredentialLinks(ctx, id); err != nil {
				return User{}, err
			}
		}

		return tx.GetUser(ctx, id)
	})
}

// credentials returns the user with an address and their password hash. It fails with NotFound for
// an unknown address.
func (s *Service) credentials(ctx context.Context, email string) (User, string, error) {
	row, err := pg.One[struct {
		User
		PasswordHash string
	}](ctx, s.q, `select u.password_hash, `+userColumns+` from platform.users u
		where u.email_folded in (@email, @former) order by u.email_folded = @email desc limit 1`,
		pgx.StrictNamedArgs{"email": foldEmail(email), "former": fold(email)})
	return row.User, row.PasswordHash, err
}

// credentialsByUUID returns a user and their password hash. It fails with NotFound for an unknown
// user.
func (s *Service) credentialsByUUID(ctx context.Context, id uuid.UUID) (User, string, error) {
	row, err := pg.One[struct {
		User
		PasswordHash string
	}](ctx, s.q, `select u.password_hash, `+userColumns+` from platform.users u where u.uuid = @id`,
		pgx.StrictNamedArgs{"id": id})
	return row.User, row.PasswordHash, err
}

// userConflict translates a violation of a unique constraint into a Conflict on its field.
func userConflict(err error) error {
	switch {
	case pg.Violates(err, "users_username_key"):
		return fault.OnField(fault.Conflict, "username", "already_exists", "is taken").WithCause(err)
	case pg.Violates(err, "users_email_key"):
		return fault.OnField(fault.Conflict, "email", "already_exists", "is taken").WithCause(err)
	}

	return err
}
