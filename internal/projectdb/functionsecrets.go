package projectdb

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

// FunctionSecretKey derives the key that seals the secrets of a project's edge functions.
func (r *Registry) FunctionSecretKey(project uuid.UUID) []byte {
	return token.Derive(r.secret, "secrets of edge functions of project "+project.String())
}

// FunctionSecretKey is [Registry.FunctionSecretKey] of this project.
func (p *Project) FunctionSecretKey() []byte { return p.registry.FunctionSecretKey(p.UUID) }

// RestoreFunctionSecrets seals the secrets of edge functions for project to, in a copy whose rows
// were loaded from a backup of project from. Those that from did not seal are deleted: an imported
// backup of another install.
func (r *Registry) RestoreFunctionSecrets(ctx context.Context, tx pgx.Tx, from, to uuid.UUID) error {
	if from == to {
		return nil
	}

	exists, err := pg.Value[bool](ctx, tx, `select to_regclass('socle.edge_function_secrets') is not null`)
	if err != nil || !exists { // a backup of an older release
		return err
	}

	type secret struct {
		Name   string
		Sealed []byte
	}
	secrets, err := pg.All[secret](ctx, tx, `select name, sealed from socle.edge_function_secrets`)
	if err != nil {
		return err
	}

	for _, s := range secrets {
		value, err := token.Open(r.FunctionSecretKey(from), s.Sealed)
		if errors.Is(err, token.ErrSealed) {
			_, err = pg.Exec(ctx, tx, `delete from socle.edge_function_secrets where name = @name`,
				pgx.StrictNamedArgs{"name": s.Name})
			if err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}

		sealed, err := token.Seal(r.FunctionSecretKey(to), value)
		if err != nil {
			return err
		}

		_, err = pg.Exec(ctx, tx, `update socle.edge_function_secrets set sealed = @sealed where name = @name`,
			pgx.StrictNamedArgs{"name": s.Name, "sealed": sealed})
		if err != nil {
			return err
		}
	}

	return nil
}
