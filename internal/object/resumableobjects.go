package object

import (
	"context"
	"io"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// ObjectResumable is a resumable upload of an application. Policies decide about it when it begins,
// and again when its object is created.
type ObjectResumable struct {
	Resumable
	BucketID     string
	IsPublic     bool
	Owner        string // the Subject of the actor
	Upsert       bool
	CacheControl string
	Metadata     []byte // a JSON object of the application; nil means none
	replaced     bool
}

// bucket returns the bucket of the upload.
func (r *ObjectResumable) bucket() Bucket {
	return Bucket{UUID: r.ContainerUUID, ID: r.BucketID, IsPublic: r.IsPublic}
}

// object returns the object of the upload, without its content.
func (r *ObjectResumable) object() NewObject {
	return NewObject{Upsert: r.Upsert, CacheControl: r.CacheControl, Metadata: r.Metadata,
		NewFile: NewFile{FullFileName: r.FullFileName, MimeType: r.MimeType, Length: r.Size}}
}

// resumableOwnership has the columns that only resumable uploads of applications fill.
type resumableOwnership struct {
	application, upsert bool
	ownership
}

// CreateObjectResumable is [CreateResumable] on behalf of an application. It fails with Forbidden
// if the policies refuse the object. A negative n.Length is deferred.
func CreateObjectResumable(
	ctx context.Context, p *projectdb.Project, a actor.Actor, b Bucket, n NewObject,
) (ObjectResumable, error) {
	if err := checkFileName(n.FullFileName); err != nil {
		return ObjectResumable{}, err
	}
	if err := askResumable(ctx, p, a, b, n); err != nil {
		return ObjectResumable{}, err
	}

	owned := ownership{application: true, owner: a.Subject, cacheControl: n.CacheControl, metadata: n.Metadata}
	r, err := createResumable(ctx, p, b.UUID, n.NewFile, resumableOwnership{true, n.Upsert, owned})
	return ObjectResumable{Resumable: r, BucketID: b.ID, IsPublic: b.IsPublic, Owner: a.Subject, Upsert: n.Upsert,
		CacheControl: n.CacheControl, Metadata: n.Metadata}, err
}

// askResumable asks whether the actor may insert the object of an upload, as far as it is known.
func askResumable(ctx context.Context, p *projectdb.Project, a actor.Actor, b Bucket, n NewObject) error {
	u, err := newUpload(p, nil, a.UserUUID(), b.UUID, n.NewFile)
	if err != nil {
		return err
	}

	u.owned = ownership{application: true, owner: a.Subject, cacheControl: n.CacheControl, metadata: n.Metadata}
	u.file.MimeType, u.file.Size = claimedType(n.MimeType), max(n.Length, 0)
	put := objectUpload{upload: u, actor: a, bucket: b}
	if n.Upsert {
		u.replacement = &replacement{check: put.checkPresent}
	}

	return put.ask(ctx)
}

// Access fails with NotFound for the upload of another user. An upload without a user, such as that
// of a key, belongs to every actor with the right to insert its object: Access fails with Forbidden
// for others.
func (r *ObjectResumable) Access(ctx context.Context, p *projectdb.Project, a actor.Actor) error {
	switch {
	case r.Owner != a.Subject:
		return fault.New(fault.NotFound, "the upload is of another user")
	case r.Owner != "":
		return nil
	}

	return askResumable(ctx, p, a, r.bucket(), r.object())
}

// GetObjectResumable returns a resumable upload of an application. It fails with NotFound if it
// does not exist or has expired. The caller checks [ObjectResumable.Access].
func GetObjectResumable(ctx context.Context, p *projectdb.Project, id uuid.UUID) (ObjectResumable, error) {
	return pg.One[ObjectResumable](ctx, p.Trusted(), `
		select u.uuid, u.container_uuid, u.full_file_name, u.mime_type, u.size, u.deferred, u.file_uuid, u.expires_at,
		       u.metadata_header, c.id as bucket_id, c.is_public, coalesce(u.owner_id, '') as owner, u.upsert,
		       coalesce(u.cache_control, '') as cache_control, u.user_metadata as metadata, case
			when u.file_uuid is not null then u.size
			else (select coalesce(sum(p.size), 0)::bigint from storage.upload_parts p where p.upload_uuid = u.uuid)
		end as offset
		from storage.resumable_uploads u join storage.containers c on c.uuid = u.container_uuid
		where u.uuid = @id and u.application and u.expires_at > now() and not c.deleting`,
		pgx.StrictNamedArgs{"id": id})
}

// AppendObjectResumable is [AppendResumable] for an upload of an application. replaced reports
// whether there are bytes that [Discard] must remove.
func AppendObjectResumable(
	ctx context.Context, p *projectdb.Project, store *blob.Store, a actor.Actor, r *ObjectResumable, n Part,
) (replaced bool, err error) {
	r.Resumable, err = appendPart(ctx, p, store, r.Resumable, n, func(ctx context.Context, now *Resumable) error {
		r.Resumable = *now
		return finishObject(ctx, p, store, a, r)
	})

	return r.replaced, err
}

// FinishObjectResumable creates the object of a complete upload, unless it exists. replaced reports
// whether there are bytes that [Discard] must remove.
func FinishObjectResumable(
	ctx context.Context, p *projectdb.Project, store *blob.Store, a actor.Actor, r *ObjectResumable,
) (replaced bool, err error) {
	err = finishObject(ctx, p, store, a, r)
	return r.replaced, err
}

func finishObject(
	ctx context.Context, p *projectdb.Project, store *blob.Store, a actor.Actor, r *ObjectResumable,
) error {
	return finishResumable(ctx, p, store, &r.Resumable, func(content io.Reader) error {
		n := r.object()
		n.Content, n.Resumed = content, r.UUID
		_, _, err := PutObject(ctx, p, store, a, r.bucket(), n)
		r.replaced = err == nil // the parts, and perhaps a former object

		return err
	})
}

// DeleteObjectResumable cancels an upload of an application. [Discard] removes its bytes.
func DeleteObjectResumable(ctx context.Context, p *projectdb.Project, r ObjectResumable) error {
	return DeleteResumable(ctx, p, r.ContainerUUID, r.UUID)
}
