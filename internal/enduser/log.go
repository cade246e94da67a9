package enduser

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// log records an action by a user, or on one, for the project's developers.
func (d *Directory) log(ctx context.Context, tx pgx.Tx, action string, u User, c Client) error {
	return d.LogAction(ctx, tx, map[string]any{"action": action, "actor_id": u.ID,
		"actor_username": cmp.Or(u.Email, u.Phone), "actor_via_sso": false, "log_type": "account"}, c)
}

// LogAction records an action by its entry's members, for the project's developers.
func (d *Directory) LogAction(ctx context.Context, tx pgx.Tx, members map[string]any, c Client) error {
	payload, err := json.Marshal(members)
	if err != nil {
		return err
	}

	var address string
	if c.Address.IsValid() {
		address = c.Address.String()
	}

	_, err = pg.Exec(ctx, tx, `
		insert into auth.audit_log_entries (id, payload, created_at, ip_address)
		values (@id, @payload::json, now(), @address)`,
		pgx.StrictNamedArgs{"id": newID(), "payload": string(payload), "address": address})
	return err
}
