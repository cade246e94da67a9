package object

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// Concat describes the role of a resumable upload in the concatenation extension of tus. A partial
// upload becomes part of a final upload instead of a file. A final upload consists of completed
// partial uploads and accepts no bytes. The zero value is neither.
type Concat struct {
	Of []uuid.UUID // UUIDs of the partial uploads of a final one, in order
	// the header as sent, which responses repeat: "partial", or "final;" and the addresses of the
	// partial uploads
	Said string
}

const (
	concatPartial = "partial"
	concatFinal   = "final;"
)

// ParseConcat parses an Upload-Concat header of the tus protocol and returns the zero value for "".
// The address of a partial upload must end in path and its UUID. It fails with Invalid on
// Upload-Concat.
func ParseConcat(text, path string) (Concat, error) {
	c := Concat{Said: text}

	list, final := strings.CutPrefix(text, concatFinal)
	if !final {
		if text != "" && text != concatPartial {
			return c, invalidConcat("invalid_format", "must be partial, or final; and the URLs of partial uploads")
		}
		return c, nil
	}

	seen := map[uuid.UUID]bool{}
	for address := range strings.FieldsSeq(list) {
		end := strings.LastIndexByte(address, '/') + 1
		id, err := uuid.Parse(address[end:])
		if err != nil || !strings.HasSuffix(address[:end], path) || seen[id] {
			return c, invalidConcat("unknown_upload", "must name uploads to this container, without duplicates")
		}

		seen[id] = true
		c.Of = append(c.Of, id)
	}

	if len(c.Of) == 0 {
		return c, invalidConcat("required", "must name at least one partial upload")
	}

	return c, nil
}

func (c Concat) isPartial() bool { return c.Said == concatPartial }

func (c Concat) isFinal() bool { return len(c.Of) > 0 }

// lockPartials locks the partial uploads of a final one and returns their total size in bytes. It
// fails with Invalid unless all of them are complete.
func (c Concat) lockPartials(ctx context.Context, tx pgx.Tx, container uuid.UUID) (size int64, err error) {
	partial, err := pg.All[struct {
		UUID          uuid.UUID
		Size, Arrived int64
		Deferred      bool
	}](ctx, tx, `
		with partial as (
			select uuid, size, deferred from storage.resumable_uploads
			where uuid = any(@of) and container_uuid = @container and concat = 'partial' and expires_at > now()
			order by uuid for update
		)
		select uuid, size, deferred, (
			select coalesce(sum(p.size), 0)::bigint from storage.upload_parts p where p.upload_uuid = uuid
		) as arrived
		from partial`,
		pgx.StrictNamedArgs{"of": c.Of, "container": container})
	if err != nil {
		return 0, err
	}

	if len(partial) < len(c.Of) {
		return 0, invalidConcat("unknown_upload", "must name existing partial uploads that no other file uses")
	}

	for _, p := range partial {
		if p.Deferred || p.Arrived < p.Size {
			return 0, invalidConcat("unfinished_upload", "must name complete uploads")
		}
		size += p.Size
	}

	return size, nil
}

// adoptParts moves the parts of the partial uploads to the final one and deletes the partial
// uploads.
func (c Concat) adoptParts(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	if _, err := pg.Exec(ctx, tx, `
		update storage.upload_parts p set upload_uuid = @final, first = p.first + u.before
		from (
			select u.uuid,
			       coalesce(sum(u.size) over (
			           order by o.n rows between unbounded preceding and 1 preceding), 0)::bigint as before
			from unnest(@of::uuid[]) with ordinality o(id, n) join storage.resumable_uploads u on u.uuid = o.id
		) u
		where p.upload_uuid = u.uuid`, pgx.StrictNamedArgs{"final": id, "of": c.Of}); err != nil {
		return err
	}

	_, err := pg.Exec(ctx, tx, `delete from storage.resumable_uploads where uuid = any(@of)`,
		pgx.StrictNamedArgs{"of": c.Of})
	return err
}

func invalidConcat(code, message string) *fault.Error {
	return fault.OnField(fault.Invalid, "Upload-Concat", code, "%s", message)
}
