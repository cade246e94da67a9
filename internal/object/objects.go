package object

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// NewObject describes an object to store.
type NewObject struct {
	NewFile
	CacheControl string
	Metadata     []byte // a JSON object of the application; nil means none
	Headers      Headers
	Upsert       bool // replace an existing object
}

// errObjectChanged reports that the object is another one than the policies have seen.
var errObjectChanged = errors.New("the object was changed concurrently")

// PutObject stores an object in a bucket of project p. It asks the policies before the first byte
// and again after the last one, and fails with Forbidden if they refuse. Otherwise it fails as
// [CreateFile] does. replaced reports whether bytes were replaced, which [Discard] must remove.
func PutObject(
	ctx context.Context, p *projectdb.Project, store *blob.Store, a actor.Actor, b Bucket, n NewObject,
) (f File, replaced bool, err error) {
	if err := checkFileName(n.FullFileName); err != nil {
		return File{}, false, err
	}

	u, err := newUpload(p, store, a.UserUUID(), b.UUID, n.NewFile)
	if err != nil {
		return File{}, false, err
	}

	u.owned = ownership{application: true, owner: a.Subject, cacheControl: n.CacheControl, metadata: n.Metadata,
		headers: n.Headers}
	put := objectUpload{upload: u, actor: a, bucket: b}
	if n.Upsert {
		u.replacement = &replacement{check: put.checkPresent}
	}

	// Policies decide first: who may not insert an object does not learn whether there is one.
	u.file.MimeType, u.file.Size = claimedType(n.MimeType), n.Length // as far as known before the first byte
	if err := put.ask(ctx); err != nil {
		return File{}, false, err
	}

	limits, err := u.begin(ctx)
	if err != nil {
		return File{}, false, err
	}

	if err = u.receive(ctx, n.NewFile, limits); err == nil {
		f, err = put.commit(ctx)
	}
	if err != nil {
		f, err = u.cleanUp(ctx, err)
	}

	return f, u.replacement.replacedBlob() != uuid.Nil, err
}

// objectUpload is the upload of an object, about which policies decide.
type objectUpload struct {
	*upload
	actor   actor.Actor
	bucket  Bucket
	present *seenObject // the object to be replaced, as the policies have seen it
}

// ask asks whether the actor may insert the object, and replace the present one.
func (o *objectUpload) ask(ctx context.Context) error {
	o.present = nil
	if o.replacement != nil {
		existing, err := pg.One[File](ctx, o.project.Trusted(), `
			select `+fileColumns+` from storage.files where `+named,
			pgx.StrictNamedArgs{"container": o.bucket.UUID, "name": o.file.FullFileName})
		if fault.Ignore(err, fault.NotFound) != nil {
			return err
		}
		if err == nil {
			o.present = &seenObject{UUID: existing.UUID, UpdatedAt: existing.UpdatedAt}
			o.replacement.oldSize = existing.Size
		}
	}

	if o.actor.BypassesPolicies() {
		return nil
	}

	args := o.owned.arguments(pgx.StrictNamedArgs{"uuid": o.file.UUID, "container": o.bucket.UUID,
		"bucket": o.bucket.ID, "name": o.file.FullFileName, "type": o.file.MimeType, "size": o.file.Size,
		"sha256": o.sha256, "blob": o.blob})
	if _, err := ask(ctx, o.project, o.actor, `
		insert into storage.objects (uuid, container_uuid, bucket_id, full_file_name, owner, owner_id, cache_control,
			user_metadata, headers, mime_type, size, sha256, blob_uuid, created_at, updated_at)
		values (@uuid, @container, @bucket, @name, @owner, @owner_id, @cache_control, @metadata, @headers, @type, @size,
			@sha256, @blob, now(), now())`,
		args); err != nil || o.present == nil {
		return err
	}

	delete(args, "uuid")
	delete(args, "bucket")
	delete(args, "blob")
	seen, err := ask(ctx, o.project, o.actor, `
		update storage.objects
		set owner = @owner, owner_id = @owner_id, cache_control = @cache_control, user_metadata = @metadata,
		    headers = @headers, mime_type = @type, size = @size, sha256 = coalesce(@sha256, sha256), updated_at = now()
		where uuid = (select uuid from storage.objects where `+named+`)`, args)
	switch {
	case err != nil:
		return err
	case len(seen) == 0:
		return fault.New(fault.Forbidden, "new row violates row-level security policy")
	}

	o.present = &seen[0]
	return nil
}

// checkPresent fails if the object has changed since the policies were evaluated.
func (o *objectUpload) checkPresent(present *File) error {
	if (present == nil) != (o.present == nil) || (present != nil && !o.present.matches(*present)) {
		return errObjectChanged
	}
	return nil
}

// commit creates the object. It asks again first, also after a concurrent change of the object.
func (o *objectUpload) commit(ctx context.Context) (File, error) {
	for range maxReplaceAttempts {
		if err := o.ask(ctx); err != nil {
			return File{}, err
		}

		f, err := o.upload.commit(ctx)
		if !errors.Is(err, errObjectChanged) {
			return f, err
		}
	}

	return File{}, errContention
}

// RemoveObjects deletes those of the objects of a bucket that the policies allow to delete, and
// returns them. names are at most 1000. [Discard] removes their bytes.
func RemoveObjects(ctx context.Context, p *projectdb.Project, a actor.Actor, b Bucket, names []string) ([]File, error) {
	var ids []uuid.UUID
	var times []any
	if !a.BypassesPolicies() {
		seen, err := ask(ctx, p, a,
			`delete from storage.objects where container_uuid = @container and full_file_name = any(@names)`,
			pgx.StrictNamedArgs{"container": b.UUID, "names": names})
		if err != nil {
			return nil, err
		}

		for _, s := range seen {
			ids, times = append(ids, s.UUID), append(times, s.UpdatedAt)
		}
	}

	return pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) ([]File, error) {
		return pg.All[File](ctx, tx, `
			with gone as (
				delete from storage.files f where container_uuid = @container and full_file_name = any(@names)
				  and (@all or (f.uuid, f.updated_at) in (select * from unnest(@ids::uuid[], @times::timestamptz[])))
				returning *
			), noted as (
				insert into storage.discarded (blob_uuid) select blob_uuid from gone
			)
			select `+fileColumns+` from gone order by full_file_name`,
			pgx.StrictNamedArgs{"container": b.UUID, "names": names, "all": a.BypassesPolicies(), "ids": ids,
				"times": times})
	})
}

// MoveObject renames an object or moves it to another bucket, without copying bytes. It fails with
// NotFound if the policies hide the object, with Forbidden if they refuse the change, and otherwise
// as [UpdateFile] does.
func MoveObject(
	ctx context.Context, p *projectdb.Project, a actor.Actor, from, to Bucket, source, destination string,
) (File, error) {
	if err := checkFileName(destination); err != nil {
		return File{}, err
	}

	for range maxReplaceAttempts {
		seen, err := findToMove(ctx, p, a, from, to, source, destination)
		if err != nil {
			return File{}, err
		}

		f, err := moveSeen(ctx, p, a.UserUUID(), seen, FileUpdate{FullFileName: &destination, Container: &to.UUID})
		if !errors.Is(err, errObjectChanged) {
			return f, err
		}
	}

	return File{}, errContention
}

// findToMove returns the object that the actor may move.
func findToMove(
	ctx context.Context, p *projectdb.Project, a actor.Actor, from, to Bucket, source, destination string,
) (seenObject, error) {
	if a.BypassesPolicies() {
		f, err := pg.One[File](ctx, p.Trusted(), `
			select `+fileColumns+` from storage.files where `+named,
			pgx.StrictNamedArgs{"container": from.UUID, "name": source})
		return seenObject{UUID: f.UUID, Name: f.FullFileName, UpdatedAt: f.UpdatedAt}, err
	}

	seen, err := ask(ctx, p, a, `
		update storage.objects set container_uuid = @to, bucket_id = @bucket, full_file_name = @destination, updated_at = now()
		where uuid = (select uuid from storage.objects where `+named+`)`,
		pgx.StrictNamedArgs{"container": from.UUID, "name": source, "to": to.UUID, "bucket": to.ID,
			"destination": destination})
	switch {
	case pg.Violates(err, "files_full_file_name_key"):
		return seenObject{}, nameTaken().WithCause(err)
	case err != nil:
		return seenObject{}, err
	case len(seen) == 0:
		return seenObject{}, fault.New(fault.NotFound, "the object does not exist")
	}

	return seen[0], nil
}

// moveSeen moves an object unless it has changed since the policies were evaluated.
func moveSeen(
	ctx context.Context, p *projectdb.Project, user uuid.UUID, seen seenObject, u FileUpdate,
) (File, error) {
	moved, err := pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (File, error) {
		f, err := pg.One[File](ctx, tx,
			`select `+fileColumns+` from storage.files where uuid = @uuid for no key update`,
			pgx.StrictNamedArgs{"uuid": seen.UUID})
		if fault.Is(err, fault.NotFound) || (err == nil && !seen.matches(f)) {
			return f, errObjectChanged
		}
		if err != nil {
			return f, err
		}

		if err := u.check(ctx, tx, f); err != nil {
			return f, err
		}

		return u.apply(ctx, tx, user, f.UUID)
	})
	if pg.Violates(err, "files_full_file_name_key") {
		return moved, nameTaken().WithCause(err)
	}

	return moved, err
}

// CopyObject stores a copy of an object, in the same bucket or another one. The copy has the type
// of the source, and its metadata unless n has some of its own. It fails with NotFound if the
// policies hide the source, and otherwise as [PutObject] does.
func CopyObject(
	ctx context.Context, p *projectdb.Project, store *blob.Store, a actor.Actor, from, to Bucket, source string, n NewObject,
) (f File, replaced bool, err error) {
	o, content, err := OpenObject(ctx, p, store, a, from, source)
	if err != nil {
		return File{}, false, err
	}
	defer content.Close()

	n.Content, n.Length = content, o.Size
	if n.MimeType == "" {
		n.MimeType = o.MimeType
	}
	if n.CacheControl == "" {
		n.CacheControl = o.CacheControl()
	}
	if n.Metadata == nil {
		n.Metadata = o.UserMetadata
	}
	n.Headers = o.Headers

	return PutObject(ctx, p, store, a, to, n)
}

// Object is an object of a bucket.
type Object struct {
	UUID          uuid.UUID
	ContainerUUID uuid.UUID
	FullFileName  string
	MimeType      string
	Size          int64  // bytes
	SHA256        []byte `db:"sha256"`
	CreatedAt     time.Time
	UpdatedAt     time.Time
	BlobUUID      uuid.UUID
	Version       string
	Cache         *string `db:"cache_control"`
	UserMetadata  []byte  // JSON of the application; nil if there is none
	Headers       Headers
}

// File returns the object as a file.
func (o Object) File() File {
	return File{UUID: o.UUID, ContainerUUID: o.ContainerUUID, FullFileName: o.FullFileName, MimeType: o.MimeType,
		Size: o.Size, SHA256: o.SHA256, CreatedAt: o.CreatedAt, UpdatedAt: o.UpdatedAt, Headers: o.Headers}
}

// CacheControl returns the header Cache-Control of the object.
func (o Object) CacheControl() string {
	if o.Cache == nil {
		return "no-cache"
	}
	return *o.Cache
}

// GetObject returns an object of a bucket. It fails with NotFound if the object does not exist or
// the policies hide it.
func GetObject(ctx context.Context, p *projectdb.Project, a actor.Actor, b Bucket, name string) (Object, error) {
	q, table := objects(p, a)
	return pg.One[Object](ctx, q, `
		select uuid, container_uuid, full_file_name, mime_type, size, sha256, created_at, updated_at, blob_uuid, version,
		       cache_control, user_metadata, headers
		from `+table+` where `+named,
		pgx.StrictNamedArgs{"container": b.UUID, "name": name})
}

// OpenObject is [GetObject] with the object's content, which the caller closes.
func OpenObject(
	ctx context.Context, p *projectdb.Project, store *blob.Store, a actor.Actor, b Bucket, name string,
) (o Object, content *Content, err error) {
	_, content, err = open(ctx, p, store, func() (storedFile, error) {
		o, err = GetObject(ctx, p, a, b, name)
		return storedFile{File: o.File(), BlobUUID: o.BlobUUID}, err
	})

	return o, content, err
}

// FindObjects returns those of the names that are objects of a bucket and that the policies show.
// names are at most 1000.
func FindObjects(
	ctx context.Context, p *projectdb.Project, a actor.Actor, b Bucket, names []string,
) ([]string, error) {
	q, table := objects(p, a)
	return pg.Values[string](ctx, q, `
		select full_file_name from `+table+` where container_uuid = @container and full_file_name = any(@names)`,
		pgx.StrictNamedArgs{"container": b.UUID, "names": names})
}

// CheckUpload fails as [PutObject] does before the first byte of an upload, if the actor may not
// store an object of this name now.
func CheckUpload(
	ctx context.Context, p *projectdb.Project, a actor.Actor, b Bucket, name string, upsert bool,
) error {
	if err := checkFileName(name); err != nil {
		return err
	}

	u, err := newUpload(p, nil, a.UserUUID(), b.UUID, NewFile{FullFileName: name})
	if err != nil {
		return err
	}

	u.owned = ownership{application: true, owner: a.Subject}
	put := objectUpload{upload: u, actor: a, bucket: b}
	if upsert {
		u.replacement = &replacement{check: put.checkPresent}
	}
	if err := put.ask(ctx); err != nil || upsert {
		return err
	}

	_, err = GetObject(ctx, p, actor.Actor{Role: actor.ServiceRole}, b, name)
	if err == nil {
		return nameTaken()
	}

	return fault.Ignore(err, fault.NotFound)
}
