package platform

import (
	"context"
	"net/mail"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/text/unicode/norm"

	"socle/internal/audit"
	"socle/internal/fault"
	"socle/internal/pg"
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

const userColumns = `
	u.uuid, u.username, u.email, u.bio, u.status, u.organization_uuid, u.created_at, u.updated_at,
	case when u.is_administrator then 1 else coalesce((select m.role from platform.members m
		where m.organization_uuid = u.organization_uuid and m.user_uuid = u.uuid), 5) end as role_id`

// NewUser holds the parameters of an account. The caller hashes the password.
type NewUser struct {
	Username, Email, Bio string
	PasswordHash         string
	Claim                bool // becomes the administrator if the install has none
}

// UserUpdate changes a user. Nil fields are left unchanged. The caller hashes the password.
type UserUpdate struct {
	Username, Email, Bio *string
	PasswordHash         *string
}

// Limits of an address in bytes, from RFC 5321.
const (
	maxEmail = 254
	maxLocal = 64
)

var usernamePattern = regexp.MustCompile(`^[\p{L}\p{N}_-]{3,100}$`)

// CleanUsername returns a user name in its stored form. It fails with Unprocessable on the field
// username.
func CleanUsername(s string) (string, error) {
	s = strings.TrimSpace(s)
	if !usernamePattern.MatchString(s) {
		return "", fault.OnField(fault.Unprocessable, "username", "invalid_format",
			"must be 3 to 100 letters, digits, _ or -")
	}

	return s, nil
}

// CleanEmail returns an address in its stored form. It fails with Unprocessable on the field email.
func CleanEmail(s string) (string, error) {
	s = strings.TrimSpace(s)
	plain := norm.NFKC.String(s) // the normalized form must be an address as well
	local, domain, _ := strings.Cut(plain, "@")

	a, err := mail.ParseAddress(plain)
	if err != nil || a.Address != plain || len(plain) > maxEmail || len(local) > maxLocal ||
		strings.Contains(domain, "@") || strings.HasPrefix(domain, "-") || strings.ContainsFunc(plain, notInEmail) {
		return "", fault.OnField(fault.Unprocessable, "email", "invalid_format",
			"must be an e-mail address of at most %d characters", maxEmail)
	}

	return s, nil
}

// notInEmail reports whether a character is not allowed in addresses. Invisible characters would
// allow look-alike addresses.
func notInEmail(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(` "<>()[]`, r) }

// CreateUser creates an account and the organization that it owns. It fails with Conflict on
// username or email if one is taken.
func (s *Store) CreateUser(ctx context.Context, n NewUser) (User, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return User{}, err
	}

	organization, err := uuid.NewV7()
	if err != nil {
		return User{}, err
	}

	var user User
	err = s.InTx(ctx, func(tx *Store) error {
		audit.CreatedUUID(ctx, id)

		administrator, err := tx.claimAdministrator(ctx, id, n.Claim)
		if err != nil {
			return err
		}

		if err := tx.createOrganization(ctx, organization, n.Username); err != nil {
			return err
		}
		if _, err := pg.Exec(ctx, tx.q, `
			insert into platform.users (uuid, username, username_folded, email, email_folded, bio, password_hash,
				organization_uuid, is_administrator)
			values (@id, @username, @username_folded, @email, @email_folded, @bio, @hash, @organization, @administrator)`,
			pgx.StrictNamedArgs{"id": id, "username": n.Username, "username_folded": fold(n.Username),
				"email": n.Email, "email_folded": fold(n.Email), "bio": n.Bio, "hash": n.PasswordHash,
				"organization": organization, "administrator": administrator}); err != nil {
			return userConflict(err)
		}
		if err := tx.addMember(ctx, organization, id, Owner); err != nil {
			return err
		}

		user, err = tx.GetUser(ctx, id)
		return err
	})

	return user, err
}

// claimAdministrator makes the user the administrator if wanted and the install has none. The row
// lock lets one of several concurrent calls succeed.
func (s *Store) claimAdministrator(ctx context.Context, user uuid.UUID, wanted bool) (bool, error) {
	if !wanted {
		return false, nil
	}

	n, err := pg.Exec(ctx, s.q, `
		update platform.instance set administrator_uuid = @user where administrator_uuid is null`,
		pgx.StrictNamedArgs{"user": user})
	return n == 1, err
}

// Claimed reports whether the install has an administrator.
func (s *Store) Claimed(ctx context.Context) (bool, error) {
	return pg.Value[bool](ctx, s.q, `select administrator_uuid is not null from platform.instance`)
}

// CreateAdministrator creates an account that administrates the install, whether or not others do.
func (s *Store) CreateAdministrator(ctx context.Context, n NewUser) (User, error) {
	n.Claim = true
	var user User
	err := s.InTx(ctx, func(tx *Store) error {
		created, err := tx.CreateUser(ctx, n)
		if err != nil {
			return err
		}

		if _, err := pg.Exec(ctx, tx.q, `update platform.users set is_administrator = true where uuid = @id`,
			pgx.StrictNamedArgs{"id": created.UUID}); err != nil {
			return err
		}

		user, err = tx.GetUser(ctx, created.UUID)
		return err
	})

	return user, err
}

// GetUser returns a user. It fails with NotFound for an unknown user.
func (s *Store) GetUser(ctx context.Context, id uuid.UUID) (User, error) {
	return pg.One[User](ctx, s.q, `select `+userColumns+` from platform.users u where u.uuid = @id`,
		pgx.StrictNamedArgs{"id": id})
}

// UpdateUser changes a user. A new password deletes all sessions of the user except keep. A new
// password or address deletes pending links that could change either. It fails with Conflict on
// username or email if one is taken.
func (s *Store) UpdateUser(ctx context.Context, id, keep uuid.UUID, u UserUpdate) (User, error) {
	var user User
	err := s.InTx(ctx, func(tx *Store) error {
		n, err := pg.Exec(ctx, tx.q, `
			update platform.users
			set username = coalesce(@username, username), username_folded = coalesce(@username_folded, username_folded),
			    email = coalesce(@email, email), email_folded = coalesce(@email_folded, email_folded),
			    bio = coalesce(@bio, bio), password_hash = coalesce(@hash, password_hash), updated_at = now()
			where uuid = @id`,
			pgx.StrictNamedArgs{"id": id, "username": u.Username, "username_folded": foldOptional(u.Username),
				"email": u.Email, "email_folded": foldOptional(u.Email), "bio": u.Bio, "hash": u.PasswordHash})
		if err != nil {
			return userConflict(err)
		}

		if n == 0 {
			return fault.New(fault.NotFound, "there is no such user")
		}

		if u.PasswordHash != nil {
			if err := tx.endSessions(ctx, id, keep); err != nil {
				return err
			}
		}

		if u.PasswordHash != nil || u.Email != nil {
			if err := tx.voidCredentialLinks(ctx, id); err != nil {
				return err
			}
		}

		user, err = tx.GetUser(ctx, id)
		return err
	})

	return user, err
}

// Credentials returns the user with an address and their password hash. It fails with NotFound for
// an unknown address.
func (s *Store) Credentials(ctx context.Context, email string) (User, string, error) {
	found, err := pg.One[struct {
		User
		PasswordHash string
	}](ctx, s.q, `select u.password_hash, `+userColumns+` from platform.users u where u.email_folded = @email`,
		pgx.StrictNamedArgs{"email": fold(email)})
	return found.User, found.PasswordHash, err
}

// CredentialsByUUID returns a user and their password hash. It fails with NotFound for an unknown
// user.
func (s *Store) CredentialsByUUID(ctx context.Context, id uuid.UUID) (User, string, error) {
	found, err := pg.One[struct {
		User
		PasswordHash string
	}](ctx, s.q, `select u.password_hash, `+userColumns+` from platform.users u where u.uuid = @id`,
		pgx.StrictNamedArgs{"id": id})
	return found.User, found.PasswordHash, err
}

// EmailKey returns the canonical form of an address, for counting attempts: equal for all its
// spellings.
func EmailKey(email string) string { return fold(email) }

func foldOptional(s *string) *string {
	if s == nil {
		return nil
	}

	folded := fold(*s)
	return &folded
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

// DeleteUser deletes a user, their sessions, their memberships, and the organizations without
// another member or a project. Rows that the user created elsewhere stay and keep their UUID. It
// fails with NotFound for an unknown user. It fails with Conflict if an organization would lose its
// last owner, or the install its last administrator.
func (s *Store) DeleteUser(ctx context.Context, id uuid.UUID) (User, error) {
	return txValue(ctx, s, func(tx *Store) (User, error) {
		args := pgx.StrictNamedArgs{"user": id}
		administrates, err := pg.Value[bool](ctx, tx.q, `
			select is_administrator and status = 'active' from platform.users where uuid = @user for update`, args)
		if err != nil {
			return User{}, err
		}

		user, err := tx.GetUser(ctx, id)
		if err != nil {
			return user, err
		}

		if administrates {
			if err := tx.requireOtherAdministrator(ctx, id); err != nil {
				return user, err
			}
		}

		if err := tx.requireOtherOwners(ctx, id); err != nil {
			return user, err
		}

		// One statement, because users and organizations reference each other.
		_, err = pg.Exec(ctx, tx.q, `
			with empty as (
				delete from platform.organizations o
				where exists (select from platform.members where organization_uuid = o.uuid and user_uuid = @user)
				and not exists (select from platform.members where organization_uuid = o.uuid and user_uuid <> @user)
				and not exists (select from platform.projects where organization_uuid = o.uuid))
			delete from platform.users where uuid = @user`, args)

		return user, err
	})
}

// requireOtherAdministrator fails with Conflict if the user is the last active administrator of the
// install. The row lock serializes concurrent deletions, so that one administrator remains.
func (s *Store) requireOtherAdministrator(ctx context.Context, user uuid.UUID) error {
	if _, err := pg.Value[bool](ctx, s.q, `select one from platform.instance for no key update`); err != nil {
		return err
	}

	another, err := pg.Value[bool](ctx, s.q, `
		select exists (select from platform.users where is_administrator and status = 'active' and uuid <> @user)`,
		pgx.StrictNamedArgs{"user": user})
	if err != nil {
		return err
	}

	if !another {
		return fault.New(fault.Conflict, "the instance would have no administrator").WithCode("last_administrator")
	}

	return nil
}

// requireOtherOwners fails with Conflict, and lists the organizations, if the user is the only
// owner of organizations that have other members or projects. It locks all organizations of the
// user against concurrent membership changes.
func (s *Store) requireOtherOwners(ctx context.Context, user uuid.UUID) error {
	args := pgx.StrictNamedArgs{"user": user}
	if _, err := pg.Values[uuid.UUID](ctx, s.q, `
		select o.uuid from platform.organizations o
		where exists (select from platform.members where organization_uuid = o.uuid and user_uuid = @user)
		order by o.uuid for update`, args); err != nil {
		return err
	}

	ownerless, err := pg.Values[uuid.UUID](ctx, s.q, `
		select m.organization_uuid from platform.members m
		where m.user_uuid = @user and m.role = 2
		and not exists (select from platform.members where organization_uuid = m.organization_uuid and role = 2 and user_uuid <> @user)
		and (exists (select from platform.members where organization_uuid = m.organization_uuid and user_uuid <> @user)
			or exists (select from platform.projects where organization_uuid = m.organization_uuid))
		order by m.organization_uuid`, args)
	if err != nil || len(ownerless) == 0 {
		return err
	}

	return &fault.Error{Kind: fault.Conflict, Code: "last_owner", Extra: map[string]any{"organizations": ownerless},
		Detail: "organizations with projects or other members would lose their only owner: " +
			"transfer them or delete their projects first"}
}
