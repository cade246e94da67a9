package object

import (
	"cmp"
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

func (u *upload) createInTx(ctx context.Context) (File, error) {
	return pg.InTxValue(ctx, u.project.InTx, func(tx pgx.Tx) (File, error) {
		file, err := u.create(ctx, tx)
		if err == nil && u.replacedBlob == uuid.Nil {
			audit.CreatedUUID(ctx, file.UUID)
		}

		return file, err
	})
}

// create creates the file if the container still exists and still accepts it.
func (u *upload) create(ctx context.Context, tx pgx.Tx) (File, error) {
	rows, err := pg.Exec(ctx, tx, `delete from storage.uploads where blob_uuid = @blob`,
		pgx.StrictNamedArgs{"blob": u.blob})
	if err != nil {
		return File{}, err
	}
	if rows == 0 {
		return File{}, uploadExpired()
	}

	limits, err := lockLimits(ctx, tx, u.container.UUID)
	if err == nil {
		err = limits.checkFile(u.file)
	}
	if err != nil {
		return File{}, err
	}

	present, err := u.lockPresent(ctx, tx)
	if err != nil {
		return File{}, err
	}

	if u.ends != nil {
		file := u.file.UUID
		if present != nil {
			file = present.UUID
		}
		if err := u.ends.complete(ctx, tx, file); err != nil {
			return File{}, err
		}
	}

	var file File
	if present != nil {
		file, err = u.overwrite(ctx, tx, *present)
	} else {
		file, err = u.insert(ctx, tx)
	}
	if err == nil && (present == nil || u.file.Size > present.Size) {
		err = checkQuota(ctx, tx)
	}
	if err != nil {
		return File{}, err
	}

	u.inserted, u.file.UUID = true, file.UUID
	return file, nil
}

// insert inserts the row of the file.
func (u *upload) insert(ctx context.Context, tx pgx.Tx) (File, error) {
	file, err := pg.One[File](ctx, tx, `
		insert into storage.files
			(uuid, container_uuid, full_file_name, mime_type, size, sha256, blob_uuid, created_by, updated_by,
			 owner, owner_id, cache_control, user_metadata, headers)
		values (@id, @container, @name, @type, @size, @sha256, @blob, @user, @user,
			@owner, @owner_id, @cache_control, @metadata, @headers)
		on conflict on constraint files_full_file_name_key do nothing
		returning `+fileColumns,
		u.values(pgx.StrictNamedArgs{"id": u.file.UUID, "container": u.container.UUID, "name": u.file.FullFileName,
			"blob": u.blob, "user": u.actor.UserUUID()}))
	switch {
	case fault.Is(err, fault.NotFound) && u.in.Upsert: // a concurrent upload has created it
		return File{}, errFileChanged
	case fault.Is(err, fault.NotFound):
		return File{}, nameTaken().WithCause(err)
	}

	return file, err
}

// insertAtOnce is [upload.create] for a new file, in one round trip. It counts the file itself, in
// the container's and the project's rows, in place of the trigger files_inserted, so the locks end
// before the flush.
func (u *upload) insertAtOnce(ctx context.Context) (File, error) {
	audit.CreatedUUID(ctx, u.file.UUID)
	plain, family := typesOf(u.file.MimeType)

	file, err := projectdb.ChangeOne[File](ctx, u.project, audit.Change{
		Lock:     `select from storage.containers where uuid = @container for no key update`,
		LockArgs: pgx.StrictNamedArgs{"container": u.container.UUID},
		With: `
			note as materialized (
				select blob_uuid from storage.uploads where blob_uuid = @blob for update
			), container as (
				update storage.containers
				set total_files = total_files + 1, total_size = total_size + @size, pending_changes = pending_changes + 1
				where uuid = @container and not deleting and max_file_size >= @size
				  and (allowed_mime_types = '{}' or allowed_mime_types && array[@type_only, @family]::text[])
				  and exists (select from note)
				returning uuid, id, set_config('socle.counted', 'on', true)
			), inserted as (
				insert into storage.files
					(uuid, container_uuid, bucket_id, full_file_name, mime_type, size, sha256, blob_uuid, created_by, updated_by,
					owner, owner_id, cache_control, user_metadata, headers)
				select @id, c.uuid, c.id, @name, @type, @size, @sha256, @blob, @user, @user,
					@owner, @owner_id, @cache_control, @metadata, @headers
				from container c
				returning *
			), noted as (
				insert into storage.sorted_pending
					(container_uuid, change, full_file_name, mime_type, size, created_at, updated_at, file_uuid)
				select container_uuid, 1, full_file_name, mime_type, size, created_at, updated_at, uuid from inserted
			), project as (
				update storage.usage set files = files + 1, bytes = bytes + @size where exists (select from inserted)
				returning case when files > coalesce(max_files, @files) or bytes > coalesce(max_bytes, @bytes)
					then storage.check_quota(@files, @bytes) end
			), completed as (
				delete from storage.uploads u using inserted i where u.blob_uuid = i.blob_uuid
			)`,
		SQL: `select ` + fileColumns + ` from inserted`,
		Args: u.values(pgx.StrictNamedArgs{"id": u.file.UUID, "container": u.container.UUID,
			"name": u.file.FullFileName, "type_only": plain, "family": family, "blob": u.blob,
			"user": u.actor.UserUUID(), "files": DefaultQuotaFiles, "bytes": DefaultQuotaBytes}),
		EarlyRelease: true,
	})

	u.inserted = err == nil || fault.Of(err).Code == pg.OutcomeUnknown

	switch {
	case fault.Is(err, fault.NotFound):
		return file, u.refusal(ctx)
	case pg.Violates(err, "usage_files_quota"), pg.Violates(err, "usage_bytes_quota"):
		return file, quotaExceededBy(ctx, u.project, err)
	}

	return file, fileNameTaken(err)
}

// refusal explains why insertAtOnce created no file: it returns the failed condition, or
// errFileChanged if all hold by now.
func (u *upload) refusal(ctx context.Context) error {
	limits, err := pg.One[struct {
		uploadLimits
		Noted bool
	}](ctx, u.project.Trusted(), `
		select max_file_size, allowed_mime_types, exists (select from storage.uploads where blob_uuid = @blob) as noted
		from storage.containers where uuid = @container and not deleting`,
		pgx.StrictNamedArgs{"container": u.container.UUID, "blob": u.blob})
	switch {
	case err != nil:
		return err
	case !limits.Noted:
		return uploadExpired()
	}

	return cmp.Or(limits.checkFile(u.file), errFileChanged)
}
