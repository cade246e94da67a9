package object

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Usage holds the number and total size of a project's files.
type Usage struct {
	Count int64 `json:"count"`
	Bytes int64 `json:"bytes"`
}

func GetUsage(ctx context.Context, p *projectdb.Project) (Usage, error) {
	return pg.One[Usage](ctx, p.Trusted(), `select files as count, bytes from storage.usage`)
}

// Default file quota per project.
const (
	DefaultQuotaFiles int64 = 10_000_000
	DefaultQuotaBytes int64 = 1 << 40
)

// Quota holds a project's file quota and current usage.
type Quota struct {
	MaxFiles int64 `json:"maxFiles"`
	MaxBytes int64 `json:"maxBytes"`
	Files    int64 `json:"files"`
	Bytes    int64 `json:"bytes"`
}

const quotaColumns = `
	coalesce(max_files, @files::bigint) as max_files, coalesce(max_bytes, @bytes::bigint) as max_bytes, files, bytes`

var quotaDefaults = pgx.StrictNamedArgs{"files": DefaultQuotaFiles, "bytes": DefaultQuotaBytes}

func GetQuota(ctx context.Context, p *projectdb.Project) (Quota, error) {
	return pg.One[Quota](ctx, p.Trusted(), `select `+quotaColumns+` from storage.usage`, quotaDefaults)
}

// UpdateQuota sets the quota in the transaction's project; nil leaves a value unchanged. Existing
// files stay, even if they exceed the new quota.
func UpdateQuota(ctx context.Context, tx pgx.Tx, maxFiles, maxBytes *int64) (Quota, error) {
	if _, err := pg.Exec(ctx, tx, `
		update storage.usage set max_files = coalesce(@files, max_files), max_bytes = coalesce(@bytes, max_bytes)`,
		pgx.StrictNamedArgs{"files": maxFiles, "bytes": maxBytes}); err != nil {
		return Quota{}, err
	}

	return pg.One[Quota](ctx, tx, `select `+quotaColumns+` from storage.usage`, quotaDefaults)
}

// checkDatabase fails with TooLarge if the project's database is full. Every upload calls it before
// the first byte, whichever way it comes in: files, parts and their metadata are rows.
func checkDatabase(p *projectdb.Project) error {
	if p.OverQuota() {
		return projectdb.ErrOverQuota
	}
	return nil
}

// checkQuota fails with TooLarge if the project's files, including those in the transaction, exceed
// the quota. The transaction has locked the storage.usage row, so that no other adds files before
// it ends.
func checkQuota(ctx context.Context, tx pgx.Tx) error {
	q, err := pg.One[Quota](ctx, tx, `select `+quotaColumns+` from storage.usage`, quotaDefaults)
	switch {
	case err != nil:
		return err
	case q.Files > q.MaxFiles:
		return overFileQuota(q.MaxFiles)
	case q.Bytes > q.MaxBytes:
		return overQuota(q.MaxBytes)
	}

	return nil
}

// quotaExceededBy returns the failure for a change that storage.check_quota refused.
func quotaExceededBy(ctx context.Context, p *projectdb.Project, cause error) error {
	q, err := GetQuota(ctx, p)
	switch {
	case err != nil:
		return err
	case pg.Violates(cause, "usage_files_quota"):
		return overFileQuota(q.MaxFiles).WithCause(cause)
	}

	return overQuota(q.MaxBytes).WithCause(cause)
}

func overFileQuota(limit int64) *fault.Error {
	return fault.New(fault.TooLarge, "the project has reached its quota of %d files", limit).
		WithCode(quotaExceeded)
}

const quotaExceeded = "quota_exceeded"

func overQuota(limit int64) *fault.Error {
	return fault.New(fault.TooLarge, "the project's files would exceed its quota of %d bytes", limit).
		WithCode(quotaExceeded)
}
