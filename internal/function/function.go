// Package function owns the edge functions of projects: their rows, versions, secrets and logs, and
// the processes that run them.
//
// A function is JavaScript in the project's database. Its first request starts a process, see
// package runtime, which later requests share; it ends when it is idle, too old, replaced by
// another version, or beyond a limit:
//
//	Acquire ─► blank ─► loads ─► serves ─► drains ─► ended
//	             │        │         │         │
//	             └────────┴─────────┴─────────┴─ killed: a limit, another account, its own crash
//
// One process has one function, so functions of a project share neither memory nor globals, and the
// crash of one is no other's. Processes are shared out by account.
package function

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

const (
	// MaxCode bounds a function's code in bytes.
	MaxCode = 20 << 20

	maxFunctions    = 100      // per project
	maxVersions     = 50       // per function
	maxVersionBytes = 64 << 20 // per function
)

// EdgeFunction is a function with its current version.
type EdgeFunction struct {
	Name      string    `json:"name"`
	VerifyJWT bool      `json:"verifyJwt" db:"verify_jwt" doc:"Requests need a key or a token of the project."`
	Version   string    `json:"version" doc:"SHA-256 of the code, in hexadecimal."`
	Size      int64     `json:"size" doc:"Bytes of code."`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

const functionColumns = ` f.name, f.verify_jwt, encode(f.sha256, 'hex') as version,
	coalesce((select octet_length(v.code) from socle.edge_function_versions v
		where v.function_name = f.name and v.sha256 = f.sha256), 0)::bigint as size, f.created_at, f.updated_at `

// EdgeFunctionVersion is a version of a function.
type EdgeFunctionVersion struct {
	Version    string    `json:"version" doc:"SHA-256 of the code, in hexadecimal."`
	Size       int64     `json:"size" doc:"Bytes of code."`
	Current    bool      `json:"current" db:"is_current"`
	DeployedAt time.Time `json:"deployedAt"`
}

// IsName reports whether a function can have a name. The table has the same rule.
func IsName(name string) bool { return outbound.IsFunctionName(name) }

// List returns a page of functions and the total number.
func List(ctx context.Context, p *projectdb.Project, page pg.Page) ([]EdgeFunction, int64, error) {
	return pg.List[EdgeFunction](ctx, p.Trusted(), pg.Listing{
		Columns: functionColumns, From: `socle.edge_functions f`,
		Sorts: map[string]string{"name": "f.name", "createdAt": "f.created_at", "updatedAt": "f.updated_at"},
		Tie:   "f.name",
	}, page, pgx.StrictNamedArgs{})
}

// Get returns a function. It fails with NotFound without it.
func Get(ctx context.Context, q pg.Querier, name string) (EdgeFunction, error) {
	return pg.One[EdgeFunction](ctx, q, `select`+functionColumns+`from socle.edge_functions f where f.name = @name`,
		pgx.StrictNamedArgs{"name": name})
}

// Versions returns a page of a function's versions and the total number. It fails with NotFound
// without the function.
func Versions(
	ctx context.Context, p *projectdb.Project, name string, page pg.Page,
) ([]EdgeFunctionVersion, int64, error) {
	if _, err := Get(ctx, p.Trusted(), name); err != nil {
		return nil, 0, err
	}

	return pg.List[EdgeFunctionVersion](ctx, p.Trusted(), pg.Listing{
		Columns: `encode(v.sha256, 'hex') as version, octet_length(v.code)::bigint as size, v.sha256 = f.sha256 as is_current,
			v.deployed_at`,
		From: `socle.edge_function_versions v join socle.edge_functions f on f.name = v.function_name
			where v.function_name = @name`,
		Sorts: map[string]string{"deployedAt": "v.deployed_at"},
		Tie:   "v.sha256",
	}, page, pgx.StrictNamedArgs{"name": name})
}

// Deployment is a new version of a function.
type Deployment struct {
	Name      string
	Code      []byte
	VerifyJWT *bool // nil: unchanged, or true for a new function
}

// check fails with Unprocessable for a deployment beyond a limit.
func (d Deployment) check() error {
	switch {
	case !IsName(d.Name):
		return fault.OnField(fault.Unprocessable, "name", "invalid_name",
			"must have letters, digits, underscores and hyphens only, and at most 63 characters")
	case len(d.Code) == 0:
		return fault.OnField(fault.Unprocessable, "code", "required", "must not be empty")
	case len(d.Code) > MaxCode:
		return fault.OnField(fault.Unprocessable, "code", "too_long", "must have at most %d bytes", MaxCode)
	}

	return nil
}

// record makes a deployment the current version, and removes the oldest versions.
func record(ctx context.Context, p *projectdb.Project, d Deployment) (EdgeFunction, error) {
	sum := sha256.Sum256(d.Code)
	args := pgx.StrictNamedArgs{"name": d.Name, "verify": d.VerifyJWT, "sha256": sum[:]}

	return pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (EdgeFunction, error) {
		// One deployment at a time, so that each counts the functions of the other.
		if _, err := pg.Exec(ctx, tx, `lock table socle.edge_functions in share row exclusive mode`); err != nil {
			return EdgeFunction{}, err
		}

		if _, err := pg.Exec(ctx, tx, `
			insert into socle.edge_functions (name, verify_jwt, sha256) values (@name, coalesce(@verify, true), @sha256)
			on conflict (name) do update set sha256 = excluded.sha256, updated_at = now(),
				verify_jwt = coalesce(@verify, edge_functions.verify_jwt)`, args); err != nil {
			return EdgeFunction{}, err
		}

		count, err := pg.Value[int64](ctx, tx, `select count(*) from socle.edge_functions`)
		if err != nil {
			return EdgeFunction{}, err
		}
		if count > maxFunctions {
			return EdgeFunction{}, fault.New(fault.Unprocessable, "the project has reached its limit of %d functions",
				maxFunctions).WithCode("quota_exceeded")
		}

		if _, err := pg.Exec(ctx, tx, `
			insert into socle.edge_function_versions (function_name, sha256, code) values (@name, @sha256, @code)
			on conflict (function_name, sha256) do update set deployed_at = now()`,
			pgx.StrictNamedArgs{"name": d.Name, "sha256": sum[:], "code": d.Code}); err != nil {
			return EdgeFunction{}, err
		}

		if _, err := pg.Exec(ctx, tx, `
			delete from socle.edge_function_versions v
			using (
				select sha256, row_number() over newest as number, sum(octet_length(code)) over newest as bytes
				from socle.edge_function_versions where function_name = @name
				window newest as (order by deployed_at desc, sha256)
			) older
			where v.function_name = @name and v.sha256 = older.sha256 and v.sha256 <> @sha256
				and (older.number > @versions or older.bytes > @bytes)`,
			pgx.StrictNamedArgs{"name": d.Name, "sha256": sum[:], "versions": maxVersions,
				"bytes": maxVersionBytes}); err != nil {
			return EdgeFunction{}, err
		}

		return Get(ctx, tx, d.Name)
	})
}

// update is [Service.Update].
func update(
	ctx context.Context, p *projectdb.Project, name string, version *string, verifyJWT *bool,
) (EdgeFunction, error) {
	var sum []byte
	if version != nil {
		var err error
		if sum, err = hex.DecodeString(*version); err != nil || len(sum) != sha256.Size {
			return EdgeFunction{}, errVersion
		}
	}

	return pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (EdgeFunction, error) {
		if sum != nil {
			exists, err := pg.Value[bool](ctx, tx, `
				select exists (select from socle.edge_function_versions where function_name = @name and sha256 = @sha256)`,
				pgx.StrictNamedArgs{"name": name, "sha256": sum})
			if err != nil {
				return EdgeFunction{}, err
			}
			if !exists {
				if _, err := Get(ctx, tx, name); err != nil {
					return EdgeFunction{}, err
				}
				return EdgeFunction{}, errVersion
			}
		}

		if _, err := pg.Exec(ctx, tx, `
			update socle.edge_functions set sha256 = coalesce(@sha256, sha256), verify_jwt = coalesce(@verify, verify_jwt),
				updated_at = now()
			where name = @name`, pgx.StrictNamedArgs{"name": name, "sha256": sum, "verify": verifyJWT}); err != nil {
			return EdgeFunction{}, err
		}

		return Get(ctx, tx, name)
	})
}

var errVersion = fault.OnField(fault.Unprocessable, "version", "unknown_version", "is no version of the function")

// remove is [Service.Delete].
func remove(ctx context.Context, p *projectdb.Project, name string) (EdgeFunction, error) {
	return pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (EdgeFunction, error) {
		f, err := Get(ctx, tx, name)
		if err != nil {
			return EdgeFunction{}, err
		}

		_, err = pg.Exec(ctx, tx, `delete from socle.edge_functions where name = @name`,
			pgx.StrictNamedArgs{"name": name})
		return f, err
	})
}
