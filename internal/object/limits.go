package object

import (
	"context"
	"io"
	"mime"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// uploadLimits holds an upload's limits: the container's, and the project's quota.
type uploadLimits struct {
	MaxFileSize      int64
	AllowedMimeTypes []string
	MaxBytes         int64 `db:"-"` // project quota
	FreeBytes        int64 `db:"-"` // unused bytes within the quota
}

const (
	maxMimeTypes      = 100
	maxMimeTypeLength = 127 // bytes
)

// lockLimits returns a container's limits, and locks the container against deletion. It fails with
// NotFound if it does not exist.
func lockLimits(ctx context.Context, tx pgx.Tx, container uuid.UUID) (uploadLimits, error) {
	return pg.One[uploadLimits](ctx, tx, `
		select max_file_size, allowed_mime_types from storage.containers
		where uuid = @container and not deleting for key share`,
		pgx.StrictNamedArgs{"container": container})
}

// checkFile fails if the container does not accept a file.
func (c uploadLimits) checkFile(f File) error {
	if f.Size > c.MaxFileSize {
		return tooLarge(c.MaxFileSize)
	}
	return c.checkType(f.MimeType, "file")
}

// checkLength fails if an announced length exceeds the limits.
func (c uploadLimits) checkLength(length int64) error {
	switch {
	case length > c.MaxFileSize:
		return tooLarge(c.MaxFileSize)
	case length > c.FreeBytes:
		return overQuota(c.MaxBytes)
	}

	return nil
}

// checkClaimed fails if the container does not accept a client's claimed type. For content that
// browsers execute, only the bytes tell the type.
func (c uploadLimits) checkClaimed(mimeType string) error {
	if mimeType == "" || isActiveContent(mimeType) {
		return nil
	}
	return c.checkType(mimeType, "file")
}

// put stores a blob within the limits.
func (c uploadLimits) put(ctx context.Context, store *blob.Store, key string, content io.Reader) (blob.Object, error) {
	object, err := store.Put(ctx, key, content, min(c.MaxFileSize, c.FreeBytes))
	switch {
	case fault.Is(err, fault.TooLarge) && c.FreeBytes < c.MaxFileSize:
		err = overQuota(c.MaxBytes).WithCause(err)
	case fault.Is(err, fault.TooLarge):
		err = tooLarge(c.MaxFileSize).WithCause(err)
	}

	return object, err
}

// checkType fails with Unprocessable on field if the container does not accept the type.
func (c uploadLimits) checkType(mimeType, field string) error {
	if len(c.AllowedMimeTypes) == 0 {
		return nil
	}

	plain, family := typesOf(mimeType)
	if slices.Contains(c.AllowedMimeTypes, plain) || slices.Contains(c.AllowedMimeTypes, family) {
		return nil
	}

	return fault.OnField(fault.Unprocessable, field, "mime_type_not_allowed",
		"must be of one of these types: %s", strings.Join(c.AllowedMimeTypes, ", "))
}

// typesOf returns the entries of a container's list that allow a media type, such as image/png and
// image/*.
func typesOf(mimeType string) (plain, family string) {
	plain, _, err := mime.ParseMediaType(mimeType)
	if err != nil {
		plain = mimeType
	}

	family, _, _ = strings.Cut(plain, "/")
	return plain, family + "/*"
}

// normalizeMimeTypes normalizes media types: lower case, without duplicates, in the given order.
func normalizeMimeTypes(types []string) ([]string, *fault.Field) {
	clean := make([]string, 0, len(types))
	for _, t := range types {
		t = strings.ToLower(strings.TrimSpace(t))
		family, sub, ok := strings.Cut(t, "/")
		plain, params, err := mime.ParseMediaType(strings.TrimSuffix(t, "*") + "x")
		if sub != "*" {
			plain, params, err = mime.ParseMediaType(t)
		}

		isMalformed := !ok || err != nil || plain == "" || len(params) > 0 || len(t) > maxMimeTypeLength
		isWildcard := family == "" || family == "*" || (strings.Contains(sub, "*") && sub != "*")
		if isMalformed || isWildcard {
			return nil, &fault.Field{
				Name:    "allowed_mime_types",
				Code:    "invalid_format",
				Message: "must be types such as image/png or image/*",
			}
		}

		if !slices.Contains(clean, t) {
			clean = append(clean, t)
		}
		if len(clean) > maxMimeTypes {
			break
		}
	}

	if len(clean) > maxMimeTypes {
		return nil, &fault.Field{Name: "allowed_mime_types", Code: "too_many", Message: "must be at most 100 types"}
	}

	return clean, nil
}
