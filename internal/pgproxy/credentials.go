package pgproxy

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgwire"
	"github.com/socle-dev/socle/internal/platform"
)

// Credential lets a PostgreSQL client connect to a project's database, see [Listener]. Its password
// is shown once, on creation.
type Credential struct {
	UUID        uuid.UUID  `json:"uuid"`
	ProjectUUID uuid.UUID  `json:"projectUuid"`
	Name        string     `json:"name"`
	Access      string     `json:"access" enum:"owner,read_only" doc:"owner may do what SQL of the project may. read_only reads all tables of the project, past row level security, and changes nothing."`
	Username    string     `json:"username" doc:"User name for PostgreSQL."`
	CreatedAt   time.Time  `json:"createdAt"`
	CreatedBy   uuid.UUID  `json:"createdBy"`
	ExpiresAt   *time.Time `json:"expiresAt" doc:"null: never."`
	LastUsedAt  *time.Time `json:"lastUsedAt" doc:"Time of the last session, to the minute; null: none."`
}

// ReadOnly is the access for a credential that changes nothing.
const ReadOnly = "read_only"

const (
	credentialColumns = ` uuid, project_uuid, name, access, username, created_at, created_by, expires_at, last_used_at `
	maxCredentials    = 100 // per project
)

// NewCredential is the input for [CreateCredential].
type NewCredential struct {
	Project, User uuid.UUID
	Name, Access  string
	ExpiresAt     *time.Time
}

// CreateCredential creates a credential and returns it with the password. It fails with Conflict if
// the project has one with that name, and with Unprocessable if it has the allowed number, or the
// expiry is past.
func CreateCredential(ctx context.Context, db *platform.DB, n NewCredential) (Credential, string, error) {
	if n.Name = strings.TrimSpace(n.Name); n.Name == "" {
		return Credential{}, "", fault.OnField(fault.Unprocessable, "name", "required", "must not be blank")
	}
	if n.ExpiresAt != nil && n.ExpiresAt.Before(time.Now()) {
		return Credential{}, "", fault.OnField(fault.Unprocessable, "expires_at", "invalid_value",
			"must be in the future")
	}

	id, err := uuid.NewV7()
	if err != nil {
		return Credential{}, "", err
	}

	password := rand.Text()
	credential, err := pg.InTxValue(ctx, db.InTx, func(tx *platform.DB) (Credential, error) {
		audit.CreatedUUID(ctx, id)
		if err := tx.LockProject(ctx, n.Project); err != nil {
			return Credential{}, err
		}

		return pg.One[Credential](ctx, tx.Querier(), `
			insert into platform.database_credentials (uuid, project_uuid, name, access, username, verifier, created_by, expires_at)
			select @id, @project, @name, @access, @username, @verifier, @user, @expires
			where (select count(*) from platform.database_credentials where project_uuid = @project) < @max::bigint
			returning`+credentialColumns,
			pgx.StrictNamedArgs{"id": id, "project": n.Project, "name": n.Name, "access": n.Access,
				"username": "db_" + strings.ToLower(rand.Text()[:16]),
				"verifier": pgwire.NewVerifier(password, pgwire.Iterations).String(),
				"user":     n.User, "expires": n.ExpiresAt, "max": maxCredentials})
	})
	switch {
	case pg.Violates(err, "database_credentials_name_key"):
		return credential, "", fault.OnField(fault.Conflict, "name", "already_exists",
			"is taken by another credential of the project").WithCause(err)
	case fault.Is(err, fault.NotFound):
		return credential, "", fault.New(fault.Unprocessable, "the project has reached its limit of %d credentials",
			maxCredentials).WithCode("quota_exceeded")
	}

	return credential, password, err
}

// ListCredentials returns a page of a project's credentials and the total count.
func ListCredentials(
	ctx context.Context, db *platform.DB, project uuid.UUID, page pg.Page,
) ([]Credential, int64, error) {
	return pg.List[Credential](ctx, db.Querier(), pg.Listing{
		Columns: credentialColumns,
		From:    `platform.database_credentials where project_uuid = @project`,
		Sorts:   map[string]string{"name": "name", "access": "access", "createdAt": "created_at"},
		Tie:     "uuid",
	}, page, pgx.StrictNamedArgs{"project": project})
}

// DeleteCredential revokes a credential. Its sessions end within seconds. It fails with NotFound
// for an unknown one.
func DeleteCredential(ctx context.Context, db *platform.DB, project, id uuid.UUID) (Credential, error) {
	return pg.InTxValue(ctx, db.InTx, func(tx *platform.DB) (Credential, error) {
		return pg.One[Credential](ctx, tx.Querier(), `
		delete from platform.database_credentials where uuid = @id and project_uuid = @project
		returning`+credentialColumns, pgx.StrictNamedArgs{"id": id, "project": project})
	})
}

// projectCredential is a credential with project data, for authentication.
type projectCredential struct {
	UUID, Project uuid.UUID
	ProjectName   string
	Status        string // project status
	Access        string
	Verifier      string
	Expired       bool
	Stale         bool // last_used_at is to be renewed
}

// findCredential returns a user name's credential. It fails with NotFound for an unknown one.
func findCredential(ctx context.Context, db *platform.DB, username string) (projectCredential, error) {
	return pg.One[projectCredential](ctx, db.Querier(), `
		select c.uuid, p.uuid as project, p.name as project_name, p.status, c.access, c.verifier,
			coalesce(c.expires_at <= now(), false) as expired,
			coalesce(c.last_used_at < now() - interval '1 minute', true) as stale
		from platform.database_credentials c join platform.projects p on p.uuid = c.project_uuid
		where c.username = @username and p.status in ('active', 'paused')`,
		pgx.StrictNamedArgs{"username": username})
}

// touch records a credential's use.
func touch(ctx context.Context, db *platform.DB, id uuid.UUID) error {
	_, err := pg.Exec(ctx, db.Querier(), `
		update platform.database_credentials set last_used_at = date_trunc('minute', now()) where uuid = @id`,
		pgx.StrictNamedArgs{"id": id})
	return err
}

// checkAccess fails if the credential gives no access to the project any more.
func (c projectCredential) checkAccess() error {
	switch {
	case c.Expired:
		return fault.New(fault.Forbidden, "the credential has expired")
	case c.Status != platform.Active:
		return fault.New(fault.Conflict, "the project is paused")
	}

	return nil
}
