package event

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Channels decides about a project's private channels by its policies on realtime.messages: those
// for SELECT about receiving, those for INSERT about sending. The policies find the channel's name
// by realtime.topic(), and in the row that they are evaluated on.
type Channels struct{ Project *projectdb.Project }

// MayReceive reports whether a caller receives messages of a channel. extension is broadcast or
// presence.
func (c Channels) MayReceive(ctx context.Context, caller actor.Actor, topic, extension string) (bool, error) {
	return c.may(ctx, caller, "r", topic, extension)
}

// MaySend reports whether a caller sends messages to a channel.
func (c Channels) MaySend(ctx context.Context, caller actor.Actor, topic, extension string) (bool, error) {
	return c.may(ctx, caller, "a", topic, extension)
}

// may evaluates the policies for a command, as pg_policy names it.
func (c Channels) may(ctx context.Context, caller actor.Actor, command, topic, extension string) (bool, error) {
	if caller.BypassesPolicies() {
		return true, nil
	}

	policies, err := pg.All[struct {
		Permissive bool
		Condition  string
	}](ctx, c.Project.Trusted(), `
		select p.polpermissive as permissive, t.condition
		from pg_policy p
		cross join lateral (select pg_get_expr(case when @command = 'r' then p.polqual else coalesce(p.polwithcheck, p.polqual) end,
			p.polrelid) as condition) t
		where p.polrelid = to_regclass('realtime.messages') and p.polcmd::text in (@command, '*') and t.condition is not null
			and exists (select from unnest(p.polroles) m where m = 0 or pg_has_role(@role, m, 'usage'))`,
		pgx.StrictNamedArgs{"command": command, "role": caller.Role})
	if err != nil {
		return false, err
	}

	var permissive, restrictive []string
	for _, p := range policies {
		if p.Permissive {
			permissive = append(permissive, p.Condition)
		} else {
			restrictive = append(restrictive, p.Condition)
		}
	}
	if len(permissive) == 0 {
		return false, nil
	}

	caller.Timeout = checkTimeout
	condition := policyCondition(permissive, restrictive)
	reply, err := caller.On(c.Project.Request()).Texts(ctx, "select coalesce((select "+condition+
		" from pg_catalog.json_populate_record(null::realtime.messages, pg_catalog.json_build_object("+
		"'topic', channel.topic, 'extension', $2::pg_catalog.text, 'private', true)) as messages), false)"+
		" from (select pg_catalog.set_config('realtime.topic', $1::pg_catalog.text, true)) as channel(topic)",
		[]byte(topic), []byte(extension))
	if err != nil {
		return false, err
	}

	return string(reply[0][0]) == "t", nil
}
