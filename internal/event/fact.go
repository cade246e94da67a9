package event

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Fact is a fact of the platform about a project whose cause is outside the project's database.
type Fact struct {
	ID   uuid.UUID // consumers get a fact once that was written several times
	Type string    // see [Facts]
	At   time.Time
	Data any // encoded as a JSON object
}

// NewFactID derives the ID of a fact of a type about a subject, such as a backup. The same fact has
// the same ID on every server.
func NewFactID(typ, subject string) uuid.UUID {
	sum := sha256.Sum256([]byte(typ + "\x00" + subject))
	return Versioned(uuid.UUID(sum[:16]))
}

// Versioned marks hashed bytes as a UUID of version 8, see RFC 9562.
func Versioned(id uuid.UUID) uuid.UUID {
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return id
}

// Write writes a fact into a project's log if a webhook wants it. It may be repeated.
func Write(ctx context.Context, p *projectdb.Project, f Fact) error {
	data, err := json.Marshal(f.Data)
	if err != nil {
		return err
	}

	_, err = pg.Exec(ctx, p.Trusted(), `
		insert into socle.events (relation, operation, type, id, at, record, size)
		select 0, 'f', @type, @id, @at, @data::json, octet_length(@data::text)
		where exists (select from socle.webhooks w where socle.listening(w) and @type::text = any(w.types))`,
		pgx.StrictNamedArgs{"type": f.Type, "id": f.ID, "at": f.At, "data": string(data)})
	return err
}

// WriteQuota writes the fact that a project's database is near its quota if it is, and reports
// that. The fact has one ID a day.
func WriteQuota(ctx context.Context, p *projectdb.Project, now time.Time) (isWritten bool, err error) {
	bytes, quota := p.Size()
	if !isNear(bytes, quota) {
		return false, nil
	}

	data := struct {
		Bytes int64 `json:"database_bytes"`
		Quota int64 `json:"max_database_bytes"`
	}{bytes, quota}
	day := now.UTC().Format(time.DateOnly)

	return true, Write(ctx, p, Fact{NewFactID(QuotaNear, p.UUID.String()+" "+day), QuotaNear, now, data})
}

// isNear reports whether a size has reached four fifths of a quota, 0 if unknown.
func isNear(bytes, quota int64) bool { return quota > 0 && bytes >= quota-quota/5 }
