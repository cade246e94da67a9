package function

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/token"
)

const (
	maxSecrets = 100      // per project
	maxSecret  = 48 << 10 // bytes

	// reservedPrefix begins the names that the server sets.
	reservedPrefix = "SUPABASE_"
)

// EdgeFunctionSecret is a secret without its value, which only functions read.
type EdgeFunctionSecret struct {
	Name      string    `json:"name"`
	UpdatedAt time.Time `json:"updatedAt"`
}

var validSecretName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,254}$`)

// Secrets returns a page of a project's secrets and the total number.
func Secrets(ctx context.Context, p *projectdb.Project, page pg.Page) ([]EdgeFunctionSecret, int64, error) {
	return pg.List[EdgeFunctionSecret](ctx, p.Trusted(), pg.Listing{
		Columns: `name, updated_at`, From: `socle.edge_function_secrets`,
		Sorts: map[string]string{"name": "name", "updatedAt": "updated_at"}, Tie: "name",
	}, page, pgx.StrictNamedArgs{})
}

// setSecret is [Service.SetSecret].
func setSecret(ctx context.Context, p *projectdb.Project, name, value string) (EdgeFunctionSecret, error) {
	var none EdgeFunctionSecret
	switch {
	case !validSecretName.MatchString(name):
		return none, fault.OnField(fault.Unprocessable, "name", "invalid_name",
			"must have letters, digits and underscores only, and at most 255 characters")
	case strings.HasPrefix(name, reservedPrefix):
		return none, fault.OnField(fault.Unprocessable, "name", "reserved_name", "must not begin with %s",
			reservedPrefix)
	case len(value) > maxSecret:
		return none, fault.OnField(fault.Unprocessable, "value", "too_long", "must have at most %d bytes",
			maxSecret)
	case strings.ContainsRune(value, 0):
		return none, fault.OnField(fault.Unprocessable, "value", "invalid_text", "must have no null characters")
	}

	sealed, err := token.Seal(p.FunctionSecretKey(), []byte(value))
	if err != nil {
		return EdgeFunctionSecret{}, err
	}

	return pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (EdgeFunctionSecret, error) {
		if _, err := pg.Exec(ctx, tx, `lock table socle.edge_function_secrets in share row exclusive mode`); err != nil {
			return EdgeFunctionSecret{}, err
		}

		s, err := pg.One[EdgeFunctionSecret](ctx, tx, `
			insert into socle.edge_function_secrets (name, sealed, updated_at) values (@name, @sealed, clock_timestamp())
			on conflict (name) do update set sealed = excluded.sealed, updated_at = excluded.updated_at
			returning name, updated_at`, pgx.StrictNamedArgs{"name": name, "sealed": sealed})
		if err != nil {
			return EdgeFunctionSecret{}, err
		}

		count, err := pg.Value[int64](ctx, tx, `select count(*) from socle.edge_function_secrets`)
		if err == nil && count > maxSecrets {
			err = fault.New(fault.Unprocessable, "the project has reached its limit of %d secrets", maxSecrets).
				WithCode("quota_exceeded")
		}

		return s, err
	})
}

// deleteSecret is [Service.DeleteSecret].
func deleteSecret(ctx context.Context, p *projectdb.Project, name string) (EdgeFunctionSecret, error) {
	return pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (EdgeFunctionSecret, error) {
		return pg.One[EdgeFunctionSecret](ctx, tx, `
			delete from socle.edge_function_secrets where name = @name returning name, updated_at`,
			pgx.StrictNamedArgs{"name": name})
	})
}

// openSecrets returns the values of a project's secrets.
func openSecrets(ctx context.Context, p *projectdb.Project) (map[string]string, error) {
	type sealedSecret struct {
		Name   string
		Sealed []byte
	}
	sealed, err := pg.All[sealedSecret](ctx, p.Trusted(), `select name, sealed from socle.edge_function_secrets`)
	if err != nil {
		return nil, err
	}

	secrets := map[string]string{}
	for _, s := range sealed {
		value, err := token.Open(p.FunctionSecretKey(), s.Sealed)
		if err != nil {
			return nil, err
		}

		secrets[s.Name] = string(value)
	}

	return secrets, nil
}
