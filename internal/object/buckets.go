package object

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Bucket is a container as applications know it.
type Bucket struct {
	UUID        uuid.UUID
	ID          string
	Name        string
	Owner       *uuid.UUID
	Type        string
	IsPublic    bool
	MaxFileSize int64    // bytes; MaxFileSize means no limit of its own
	Allowed     []string `db:"allowed_mime_types"` // media types such as image/png or image/*; empty means all
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

const bucketColumns = `
	uuid, id, name, owner, type, is_public, max_file_size, allowed_mime_types, created_at, updated_at`

// BucketChange holds the values of a bucket to create or to change; nil means the default of a new
// bucket, and leaves a value of an existing one.
type BucketChange struct {
	IsPublic    *bool
	MaxFileSize *int64
	Allowed     *[]string
}

// bucketName matches the names of buckets, as Supabase allows them.
var bucketName = regexp.MustCompile(`^[A-Za-z0-9_!.*'()&$@=;:+,?-][A-Za-z0-9_!.*'() &$@=;:+,?-]{0,99}$`)

// check validates and normalizes the values.
func (b *BucketChange) check() error {
	return checkContainer(nil, nil, b.MaxFileSize, b.Allowed)
}

// FindBucket returns a bucket of project p. No policy decides about it. It fails with NotFound if
// the bucket does not exist.
func FindBucket(ctx context.Context, p *projectdb.Project, id string) (Bucket, error) {
	return GetBucket(ctx, p, actor.Actor{Role: actor.ServiceRole}, id)
}

// GetBucket returns a bucket of project p. It fails with NotFound if the bucket does not exist or
// the policies hide it.
func GetBucket(ctx context.Context, p *projectdb.Project, a actor.Actor, id string) (Bucket, error) {
	q, table := buckets(p, a)
	return pg.One[Bucket](ctx, q, `select `+bucketColumns+` from `+table+` where id = @id and not deleting`,
		pgx.StrictNamedArgs{"id": id})
}

// BucketListing selects a page of buckets.
type BucketListing struct {
	Search     string // part of the name, in any case
	Sort       string // id, name, created_at or updated_at
	Descending bool
	Offset     int
	Limit      int
}

// MaxBucketList is the maximum number of buckets of a list.
const MaxBucketList = 1000

var bucketSorts = []string{"id", "name", "created_at", "updated_at"}

// ListBuckets returns the buckets of project p that the policies show.
func ListBuckets(ctx context.Context, p *projectdb.Project, a actor.Actor, l BucketListing) ([]Bucket, error) {
	if !slices.Contains(bucketSorts, l.Sort) {
		l.Sort = "name"
	}

	q, table := buckets(p, a)
	return pg.All[Bucket](ctx, q, `
		select `+bucketColumns+` from `+table+`
		where not deleting and strpos(lower(name), lower(@search)) > 0
		order by `+l.Sort+direction(l.Descending)+`, uuid
		offset @offset limit @limit`,
		pgx.StrictNamedArgs{"search": l.Search, "offset": l.Offset, "limit": min(l.Limit, MaxBucketList)})
}

// BucketsAfter returns the buckets of project p whose ids have a prefix, after one, by id, at most
// limit. No policy decides about it.
func BucketsAfter(ctx context.Context, p *projectdb.Project, prefix, after string, limit int) ([]Bucket, error) {
	return pg.All[Bucket](ctx, p.Trusted(), `
		select `+bucketColumns+` from storage.containers
		where not deleting and starts_with(id, @prefix) and id > @after order by id limit @limit`,
		pgx.StrictNamedArgs{"prefix": prefix, "after": after, "limit": limit})
}

func direction(descending bool) string {
	if descending {
		return " desc"
	}
	return " asc"
}

// CreateBucket creates a bucket in project p. It fails with Invalid for an invalid name, with
// Unprocessable for other invalid values, with Forbidden if the policies refuse, and with Conflict
// if the id or the name is taken.
func CreateBucket(ctx context.Context, p *projectdb.Project, a actor.Actor, id, name string, n BucketChange) error {
	for _, text := range []string{id, name} {
		switch {
		case !bucketName.MatchString(text) || strings.HasSuffix(text, " "):
			return fault.New(fault.Invalid, "Bucket name invalid").WithCode("InvalidBucketName")
		case IsReserved(text):
			return fault.New(fault.Invalid, "Bucket name invalid: %q is a word of the API's paths, choose another one",
				text).WithCode("InvalidBucketName")
		}
	}
	if err := n.check(); err != nil {
		return err
	}

	container, err := uuid.NewV7()
	if err != nil {
		return err
	}

	owned := ownership{owner: a.Subject}
	args := pgx.StrictNamedArgs{"uuid": container, "id": id, "name": name, "user": a.UserUUID(),
		"public": n.IsPublic != nil && *n.IsPublic, "max": MaxFileSize, "allowed": []string{},
		"owner": owned.ownerUUID(), "owner_id": optional(owned.owner)}
	if n.MaxFileSize != nil {
		args["max"] = *n.MaxFileSize
	}
	if n.Allowed != nil {
		args["allowed"] = *n.Allowed
	}

	if err := mayCreateBucket(ctx, p, a, args); err != nil {
		return err
	}

	audit.CreatedUUID(ctx, container)
	_, err = projectdb.ChangeOne[Bucket](ctx, p, audit.Change{SQL: `
		insert into storage.containers
			(uuid, id, name, is_public, max_file_size, allowed_mime_types, owner, owner_id, created_by, updated_by)
		values (@uuid, @id, @name, @public, @max, @allowed, @owner, @owner_id, @user, @user)
		returning ` + bucketColumns, Args: args})
	if pg.Violates(err, "containers_name_key") || pg.Violates(err, "containers_id_key") {
		return fault.New(fault.Conflict, "the bucket already exists").WithCode("BucketAlreadyExists").WithCause(err)
	}

	return err
}

func mayCreateBucket(ctx context.Context, p *projectdb.Project, a actor.Actor, args pgx.StrictNamedArgs) error {
	if a.BypassesPolicies() {
		return nil
	}

	question := pgx.StrictNamedArgs{}
	for _, name := range []string{"uuid", "id", "name", "public", "max", "allowed", "owner", "owner_id"} {
		question[name] = args[name]
	}

	_, err := ask(ctx, p, a, `
		insert into storage.buckets (uuid, id, name, is_public, max_file_size, allowed_mime_types, owner, owner_id, type,
			deleting, created_at, updated_at)
		values (@uuid, @id, @name, @public, @max, @allowed, @owner, @owner_id, 'STANDARD', false, now(), now())`, question)
	return err
}

// UpdateBucket changes a bucket of project p. It fails with NotFound if the bucket does not exist
// or the policies hide it, with Forbidden if they refuse the change, and with Unprocessable for
// invalid values. Existing objects stay, even if they exceed a new limit.
func UpdateBucket(ctx context.Context, p *projectdb.Project, a actor.Actor, id string, u BucketChange) error {
	if err := u.check(); err != nil {
		return err
	}

	const values = `
		set is_public = coalesce(@public, is_public), max_file_size = coalesce(@max, max_file_size),
		    allowed_mime_types = coalesce(@allowed, allowed_mime_types), updated_at = now()`
	args := pgx.StrictNamedArgs{"id": id, "public": u.IsPublic, "max": u.MaxFileSize, "allowed": u.Allowed}
	seen, err := findBucketToChange(ctx, p, a, id,
		`update storage.buckets`+values+` where id = @id and not deleting`, args)
	if err != nil {
		return err
	}

	delete(args, "id")
	args["uuid"], args["version"], args["user"] = seen.UUID, seen.UpdatedAt, a.UserUUID()
	_, err = projectdb.ChangeOne[Bucket](ctx, p, audit.Change{SQL: `
		update storage.containers` + values + `, updated_by = @user
		where uuid = @uuid and updated_at = @version and not deleting
		returning ` + bucketColumns, Args: args})

	return bucketChanged(err)
}

// DeleteBucket deletes an empty bucket of project p. It fails with NotFound if the bucket does not
// exist or the policies hide it or refuse, and with Conflict if it has objects.
func DeleteBucket(ctx context.Context, p *projectdb.Project, a actor.Actor, id string) error {
	seen, err := findBucketToChange(ctx, p, a, id, `delete from storage.buckets where id = @id and not deleting`,
		pgx.StrictNamedArgs{"id": id})
	if err != nil {
		return err
	}

	_, err = DeleteContainer(ctx, p, seen.UUID, false)
	if fault.Is(err, fault.Conflict) {
		return fault.New(fault.Conflict, "the bucket is not empty").WithCode("ResourceNotEmpty").WithCause(err)
	}

	return err
}

// findBucketToChange returns the bucket that the actor may change by a statement.
func findBucketToChange(
	ctx context.Context, p *projectdb.Project, a actor.Actor, id, question string, args pgx.StrictNamedArgs,
) (seenObject, error) {
	if a.BypassesPolicies() {
		b, err := FindBucket(ctx, p, id)
		return seenObject{UUID: b.UUID, UpdatedAt: b.UpdatedAt}, err
	}

	seen, err := ask(ctx, p, a, question, args)
	if err == nil && len(seen) == 0 {
		err = fault.New(fault.NotFound, "the bucket does not exist")
	}
	if err != nil {
		return seenObject{}, err
	}

	return seen[0], nil
}

// bucketChanged turns the failure to find the version that the policies have seen into a Conflict.
func bucketChanged(err error) error {
	if fault.Is(err, fault.NotFound) {
		return fault.New(fault.Conflict, "the bucket was changed concurrently").WithCode("busy").WithCause(err)
	}
	return err
}

// EmptyBucket deletes the objects of a bucket that the policies allow to delete, in batches, until
// ctx ends. [Discard] removes their bytes.
func EmptyBucket(ctx context.Context, p *projectdb.Project, a actor.Actor, b Bucket) error {
	listing := ObjectListing{Limit: MaxObjectList}
	for {
		entries, err := ListObjects(ctx, p, a, b, listing)
		if err != nil || len(entries) == 0 {
			return err
		}

		names := make([]string, 0, len(entries))
		for _, e := range entries {
			names = append(names, e.Name)
		}

		if _, err := RemoveObjects(ctx, p, a, b, names); err != nil {
			return err
		}
		listing.After = names[len(names)-1]
	}
}
