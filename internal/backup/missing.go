package backup

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgdump"
)

// Missing is an object in a backup that PostgreSQL does not create again.
type Missing struct {
	Object    string `json:"object" doc:"Kind and name. \"rows of table …\" are the rows of a table, which then has none." example:"materialized view public.stats"`
	Statement string `json:"statement" doc:"Its start, if it is long."`
	Error     string `json:"error" doc:"Why PostgreSQL rejected the statement."`
}

const (
	maxMissing     = 100  // stored items
	maxMissingText = 2000 // bytes per stored text
)

// missingOf describes failures to the user.
func missingOf(failures []pgdump.Failure) []Missing {
	all := make([]Missing, len(failures))
	for i, f := range failures {
		reason := f.Cause.Message
		if context := contextOf(f.Cause.Where); context != "" {
			reason += " (" + context + ")"
		}

		all[i] = Missing{Object: describeEntry(f.Entry), Statement: truncate(strings.TrimSpace(f.Statement)),
			Error: truncate(reason)}
	}

	return all
}

// contextOf returns a context's first line about a function rather than rows.
func contextOf(where string) string {
	for line := range strings.SplitSeq(where, "\n") {
		if line != "" && !strings.HasPrefix(line, "COPY ") {
			return line
		}
	}

	return ""
}

func truncate(text string) string {
	if len(text) > maxMissingText {
		text = text[:maxMissingText] + " …"
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", "")
}

// describeEntry returns an entry's kind and name.
func describeEntry(e pgdump.Entry) string {
	kind := strings.ToLower(e.Desc)
	if table, data := strings.CutSuffix(kind, " data"); data {
		kind = "rows of " + table
	}

	name := e.Tag
	if e.Namespace != "" {
		name = e.Namespace + "." + name
	}

	return truncate(kind + " " + name)
}

// summary names the first objects.
func summary(missing []Missing) string {
	first := missing[0].Object + ": " + missing[0].Error
	if len(missing) == 1 {
		return "1 object of the backup can't be created again: " + first
	}

	return fmt.Sprintf("%d objects of the backup can't be created again; the first is %s", len(missing), first)
}

// rejectMissing fails with Unprocessable if objects are missing, unless the restore allows that or
// fills a new project.
func rejectMissing(r Restore, missing []Missing) error {
	if len(missing) == 0 || r.Target == IntoNew || r.AllowMissing {
		return nil
	}

	return fault.New(fault.Unprocessable,
		"%s. The project is unchanged. Restore into a new project, or with allow_missing", summary(missing))
}

// truncateMissing returns the first maxMissing items, and never nil.
func truncateMissing(missing []Missing) []Missing {
	if missing == nil {
		return []Missing{}
	}
	return missing[:min(len(missing), maxMissing)]
}

// recordMissing records a running restore's missing objects.
func (s *store) recordMissing(ctx context.Context, id uuid.UUID, missing []Missing) error {
	_, err := pg.Exec(ctx, s.q, `update platform.restores set missing = @missing where uuid = @id and status = 'running'`,
		pgx.StrictNamedArgs{"id": id, "missing": truncateMissing(missing)})
	return err
}
