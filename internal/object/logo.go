package object

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// A logo is a file that pages show to everybody, whether its container is public or not.

const maxLogoSize = 1 << 20 // bytes

// logoTypes are pictures that browsers show and that contain no scripts.
var logoTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// CheckLogo fails with Unprocessable on the field logo_uuid unless the file is a picture whose type
// and size a page can show.
func CheckLogo(ctx context.Context, p *projectdb.Project, file uuid.UUID) error {
	f, err := pg.One[File](ctx, p.Trusted(), `select `+fileColumns+` from storage.files where uuid = @file`,
		pgx.StrictNamedArgs{"file": file})
	switch {
	case fault.Is(err, fault.NotFound):
		return fault.OnField(fault.Unprocessable, "logo_uuid", "unknown",
			"must be a file of the project").WithCause(err)
	case err != nil:
		return err
	case !f.isLogo():
		return fault.OnField(fault.Unprocessable, "logo_uuid", "invalid_value",
			"must be a PNG, JPEG, GIF or WebP picture of at most %d bytes", maxLogoSize)
	}

	return nil
}

func (f File) isLogo() bool { return f.Size <= maxLogoSize && slices.Contains(logoTypes, f.MimeType) }

// OpenLogo returns a logo with content, which the caller closes. It fails with NotFound if the file
// does not exist or is no logo any more.
func OpenLogo(ctx context.Context, p *projectdb.Project, store *blob.Store, file uuid.UUID) (File, *Content, error) {
	f, content, err := openContent(ctx, p, store, func() (StoredFile, error) {
		return pg.One[StoredFile](ctx, p.Trusted(), `
			select `+storedColumns+` from storage.files f
			where uuid = @file
			  and not exists (select from storage.containers c where c.uuid = f.container_uuid and c.deleting)`,
			pgx.StrictNamedArgs{"file": file})
	})
	if err == nil && !f.isLogo() {
		content.Close()
		err = fault.Missing()
	}

	return f.File, content, err
}
