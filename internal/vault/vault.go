// Package vault has the rows of a project's vault: secrets that its SQL reads. The schema, its
// encryption and its limits are those of migration 00049; package projectdb has the key.
package vault

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Secret is a secret without its value, which only SQL reads.
type Secret struct {
	UUID        uuid.UUID `json:"uuid" format:"uuid"`
	Name        *string   `json:"name" doc:"null for a secret that SQL has created without a name."`
	Description string    `json:"description"`
	CreatedAt   time.Time `json:"createdAt"`
	UpdatedAt   time.Time `json:"updatedAt"`
}

const secretColumns = ` id as uuid, name, description, created_at, updated_at `

const (
	maxSecret  = 64 << 10 // bytes
	maxSecrets = 1000     // per project; the table's trigger counts
)

// NewSecret has the values of a new secret.
type NewSecret struct{ Name, Secret, Description string }

// CreateSecret creates a secret. It fails with Conflict if the name is taken and for a
// project that has a schema vault of its own, and with Unprocessable if the vault is full.
func CreateSecret(ctx context.Context, p *projectdb.Project, n NewSecret) (Secret, error) {
	if err := check(ctx, p, &n.Secret); err != nil {
		return Secret{}, err
	}

	id := uuid.New()
	audit.CreatedUUID(ctx, id)
	s, err := projectdb.ChangeOne[Secret](ctx, p, audit.Change{SQL: `
		insert into vault.secrets (id, secret, name, description) values (@id, @secret, @name, @description)
		returning` + secretColumns,
		Args: pgx.StrictNamedArgs{"id": id, "secret": n.Secret, "name": n.Name, "description": n.Description}})

	return s, vaultFault(err)
}

// ListSecrets returns a page of secrets and the total number.
func ListSecrets(ctx context.Context, p *projectdb.Project, page pg.Page) ([]Secret, int64, error) {
	if err := check(ctx, p, nil); err != nil {
		return nil, 0, err
	}

	return pg.List[Secret](ctx, p.Trusted(), pg.Listing{
		Columns: secretColumns,
		From:    `vault.secrets`,
		Sorts:   map[string]string{"name": "name", "createdAt": "created_at", "updatedAt": "updated_at"},
		Tie:     "id",
	}, page, pgx.StrictNamedArgs{})
}

// SecretUpdate has the values to change; nil leaves a value unchanged.
type SecretUpdate struct{ Name, Secret, Description *string }

// UpdateSecret changes a secret. It fails with NotFound without it, and as [CreateSecret] does.
func UpdateSecret(ctx context.Context, p *projectdb.Project, id uuid.UUID, u SecretUpdate) (Secret, error) {
	if err := check(ctx, p, u.Secret); err != nil {
		return Secret{}, err
	}

	args := pgx.StrictNamedArgs{"id": id, "name": u.Name, "secret": u.Secret, "description": u.Description}
	s, err := pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (Secret, error) {
		if _, err := pg.Exec(ctx, tx, `select vault.update_secret(@id, @secret, @name, @description)`, args); err != nil {
			return Secret{}, err
		}

		return pg.One[Secret](ctx, tx, `select`+secretColumns+`from vault.secrets where id = @id`,
			pgx.StrictNamedArgs{"id": id})
	})

	return s, vaultFault(err)
}

// DeleteSecret deletes a secret. It fails with NotFound without it.
func DeleteSecret(ctx context.Context, p *projectdb.Project, id uuid.UUID) (Secret, error) {
	if err := check(ctx, p, nil); err != nil {
		return Secret{}, err
	}

	return projectdb.ChangeOne[Secret](ctx, p, audit.Change{
		SQL:  `delete from vault.secrets where id = @id returning` + secretColumns,
		Args: pgx.StrictNamedArgs{"id": id}})
}

// FindSecret fails with NotFound unless id is a secret of the project.
func FindSecret(ctx context.Context, p *projectdb.Project, id uuid.UUID) error {
	if err := check(ctx, p, nil); err != nil {
		return err
	}

	_, err := pg.Value[bool](ctx, p.Trusted(), `select true from vault.secrets where id = @id`,
		pgx.StrictNamedArgs{"id": id})
	return err
}

// check fails for a secret that is too long, and for a project that has a schema vault of its own.
func check(ctx context.Context, p *projectdb.Project, secret *string) error {
	if secret != nil && len(*secret) > maxSecret {
		return fault.OnField(fault.Unprocessable, "secret", "too_long", "must have at most %d bytes", maxSecret)
	}

	isOwn, err := pg.Value[bool](ctx, p.Trusted(), `
		select not exists (select from pg_catalog.pg_namespace v join pg_catalog.pg_namespace s on s.nspowner = v.nspowner
			where v.nspname = 'vault' and s.nspname = 'socle')`)
	if err == nil && isOwn {
		err = fault.New(fault.Conflict, "the project has a schema vault of its own, so SQL has no secrets of the platform").
			WithCode("schema_taken")
	}

	return err
}

// vaultFault returns a refused change as a failure.
func vaultFault(err error) error {
	switch pg.State(err) {
	case "23505": // unique_violation
		return fault.OnField(fault.Conflict, "name", "already_exists", "is taken by another secret of the vault").
			WithCause(err)
	case "54000": // program_limit_exceeded
		return fault.New(fault.Unprocessable, "the vault has reached its limit of %d secrets", maxSecrets).
			WithCode("quota_exceeded").WithCause(err)
	}

	return err
}
