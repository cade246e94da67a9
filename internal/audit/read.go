package audit

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// Recorded is an entry as stored in a log.
type Recorded struct {
	Seq int64 `json:"seq" doc:"Number in the log of its database, from 1."`
	Entry
	Hash string `json:"hash" doc:"Keyed hash of this entry and the previous one, in hexadecimal."`
}

// Filter selects entries. Empty members match all.
type Filter struct {
	Actor, Action, Project string
	From, To               time.Time // To is exclusive
}

// List returns a page of a database's entries and the count that matches the filter.
func List(ctx context.Context, q pg.Querier, f Filter, page pg.Page) ([]Recorded, int64, error) {
	const from = `socle.audit
		where (@actor = '' or entry::jsonb ->> 'actor' = @actor) and (@action = '' or entry::jsonb ->> 'action' = @action)
		  and (@project = '' or entry::jsonb ->> 'project' = @project)
		  and (@from = '' or entry::jsonb ->> 'at' >= @from) and (@to = '' or entry::jsonb ->> 'at' < @to)`

	args := pgx.StrictNamedArgs{
		"actor": f.Actor, "action": f.Action, "project": f.Project, "from": formatTime(f.From), "to": formatTime(f.To),
	}
	rows, total, err := pg.List[row](ctx, q, pg.Listing{
		Columns: "seq, entry, hash",
		From:    from,
		Sorts:   map[string]string{"seq": "seq"},
		Tie:     "seq",
	}, page, args)
	if err != nil {
		return nil, 0, err
	}

	entries := make([]Recorded, len(rows))
	for i, r := range rows {
		entries[i] = Recorded{Seq: r.Seq, Hash: hex.EncodeToString(r.Hash)}
		// Write never produces unreadable text. Such an entry is shown without content, and Check
		// reports it.
		if err := json.Unmarshal([]byte(r.Entry), &entries[i].Entry); err != nil {
			entries[i].Entry = Entry{Action: "unreadable"}
		}
	}

	return entries, total, nil
}

// maxDistinct bounds the values in [Actors] and [Actions].
const maxDistinct = 1000

// Actors returns the actors in a log, for project's entries only unless project is "".
func Actors(ctx context.Context, q pg.Querier, project string) ([]string, error) {
	return pg.Values[string](ctx, q, `
		select distinct entry::jsonb ->> 'actor' from socle.audit
		where entry::jsonb ->> 'actor' <> '' and (@project = '' or entry::jsonb ->> 'project' = @project)
		limit @max::bigint`, pgx.StrictNamedArgs{"project": project, "max": maxDistinct})
}

// Actions returns the actions in a log, for project's entries only unless project is "".
func Actions(ctx context.Context, q pg.Querier, project string) ([]string, error) {
	return pg.Values[string](ctx, q, `
		select distinct entry::jsonb ->> 'action' from socle.audit
		where @project = '' or entry::jsonb ->> 'project' = @project
		limit @max::bigint`, pgx.StrictNamedArgs{"project": project, "max": maxDistinct})
}

type row struct {
	Seq   int64
	Entry string
	Hash  []byte
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeFormat)
}
