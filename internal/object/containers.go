package object

import (
	"context"
	"maps"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Container holds files. An end user sees neither its description nor its file count.
type Container struct {
	UUID        uuid.UUID `json:"uuid" format:"uuid"`
	ProjectUUID uuid.UUID `json:"projectUuid" format:"uuid"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	IsPublic    bool      `json:"isPublic" doc:"Whether its files are readable without a token."`
	MaxFileSize int64     `json:"maxFileSize" doc:"Bytes."`
	TotalFiles  int64     `json:"totalFiles"`
	// media types such as image/png or image/*; empty means all
	Allowed []string `json:"-" db:"allowed_mime_types"`
	// set by the API, which knows the server's address
	URL       string     `json:"url" db:"-" doc:"Base URL of the files."`
	ID        string     `json:"-"` // bucket name in URLs, immutable
	Type      string     `json:"-"` // STANDARD
	Owner     *uuid.UUID `json:"-"` // end user
	CreatedAt time.Time  `json:"createdAt"`
	CreatedBy uuid.UUID  `json:"createdBy" format:"uuid"`
	UpdatedAt time.Time  `json:"updatedAt"`
	UpdatedBy uuid.UUID  `json:"updatedBy" format:"uuid"`
}

const containerColumns = `
	uuid, @project::uuid as project_uuid, id, name, description, is_public, max_file_size, allowed_mime_types,
	total_files, type, owner, created_at, created_by, updated_at, updated_by`

// ContainerRef identifies a container: by UUID if there is one, or by ID. An actor to whom policies
// apply needs the ID for the container itself, and both to change files in it.
type ContainerRef struct {
	UUID uuid.UUID
	ID   string
}

func (c Container) Ref() ContainerRef { return ContainerRef{c.UUID, c.ID} }

// Conditions for a container that is not in deletion. One condition for both [ContainerRef] forms
// would make PostgreSQL plan each statement anew.
const (
	byUUID = `uuid = @uuid and not deleting`
	byID   = `id = @id and not deleting`
)

// GetContainer returns a container. It fails with NotFound if it does not exist or the policies
// hide it.
func GetContainer(ctx context.Context, p *projectdb.Project, a actor.Actor, r ContainerRef) (Container, error) {
	if !a.BypassesPolicies() {
		return pg.One[Container](ctx, a.On(p.Questions()),
			`select `+containerColumns+` from `+visibleContainers+` where `+byID,
			pgx.StrictNamedArgs{"project": p.UUID, "id": r.ID})
	}
	if r.UUID == uuid.Nil {
		return pg.One[Container](ctx, p.Trusted(),
			`select `+containerColumns+` from storage.containers where `+byID,
			pgx.StrictNamedArgs{"project": p.UUID, "id": r.ID})
	}

	return pg.One[Container](ctx, p.Trusted(), `select `+containerColumns+` from storage.containers where `+byUUID,
		pgx.StrictNamedArgs{"project": p.UUID, "uuid": r.UUID})
}

// NewContainer holds a new container's values. The rules of [checkContainer] apply.
type NewContainer struct {
	ID          string // chosen by an application; "" means the name, or the UUID if it is taken
	Name        string
	Description string
	IsPublic    bool
	MaxFileSize *int64 // bytes; nil means DefaultFileSize
	Allowed     []string
}

// CreateContainer creates a container. It fails with Unprocessable on every invalid field, with
// Forbidden if the policies refuse it, and with Conflict on name or id if one is taken.
func CreateContainer(
	ctx context.Context, p *projectdb.Project, a actor.Actor, n NewContainer,
) (Container, error) {
	size := DefaultFileSize
	if n.MaxFileSize != nil {
		size = *n.MaxFileSize
	}

	var id *string
	if n.ID != "" {
		id = &n.ID
	}
	if err := checkContainer(id, &n.Name, &n.Description, &size, &n.Allowed); err != nil {
		return Container{}, err
	}
	if err := checkReserved(n.ID, n.Name); err != nil {
		return Container{}, err
	}

	container, err := uuid.NewV7()
	if err != nil {
		return Container{}, err
	}

	args := pgx.StrictNamedArgs{"uuid": container, "id": id, "name": n.Name, "public": n.IsPublic, "max": size,
		"allowed": n.Allowed, "owner": ownerUUID(a), "owner_id": optional(ownerID(a))}
	if !a.BypassesPolicies() {
		if _, err := ask(ctx, p, a, `
			insert into storage.buckets (uuid, id, name, is_public, max_file_size, allowed_mime_types, owner, owner_id, type,
				deleting, created_at, updated_at)
			values (@uuid, @id, @name, @public, @max, @allowed, @owner, @owner_id, 'STANDARD', false, now(), now())`,
			args); err != nil {
			return Container{}, err
		}
	}

	args["project"], args["description"], args["user"] = p.UUID, n.Description, a.UserUUID()
	audit.CreatedUUID(ctx, container)
	c, err := projectdb.ChangeOne[Container](ctx, p, audit.Change{SQL: `
		insert into storage.containers
			(uuid, id, name, description, is_public, max_file_size, allowed_mime_types, owner, owner_id, created_by, updated_by)
		values (@uuid, @id, @name, @description, @public, @max, @allowed, @owner, @owner_id, @user, @user)
		returning ` + containerColumns, Args: args})

	return c, containerTaken(err)
}

// ContainerUpdate holds the values to change; nil leaves a value unchanged. [NewContainer]'s rules
// apply.
type ContainerUpdate struct {
	Name        *string
	Description *string
	IsPublic    *bool
	MaxFileSize *int64
	Allowed     *[]string
}

// UpdateContainer changes a container. It fails with NotFound if it does not exist or the policies
// hide it, with Unprocessable on every invalid field or if a member changes nothing, with Forbidden
// if the policies refuse the change, and with Conflict on name if the name is taken. Existing files
// stay, even if they exceed a new size limit.
func UpdateContainer(
	ctx context.Context, p *projectdb.Project, a actor.Actor, r ContainerRef, u ContainerUpdate,
) (Container, error) {
	if invalid := u.check(a); invalid != nil {
		if _, err := GetContainer(ctx, p, a, r); err != nil { // NotFound takes precedence
			return Container{}, err
		}
		return Container{}, invalid
	}

	if u.Name != nil && IsReserved(*u.Name) {
		present, err := GetContainer(ctx, p, a, r)
		if err != nil {
			return present, err
		}
		if present.Name != *u.Name { // an older release has taken such names
			return Container{}, nameReserved("name")
		}
	}

	const values = `
		set is_public = coalesce(@public, is_public), max_file_size = coalesce(@max, max_file_size),
		    allowed_mime_types = coalesce(@allowed, allowed_mime_types), updated_at = now()`
	args := pgx.StrictNamedArgs{"public": u.IsPublic, "max": u.MaxFileSize, "allowed": u.Allowed}
	r, updatedAt, err := askForContainer(ctx, p, a, r, `update storage.buckets`+values, args)
	if err != nil {
		return Container{}, err
	}

	args["project"], args["name"], args["description"] = p.UUID, u.Name, u.Description
	args["user"], args["version"], args["uuid"] = a.UserUUID(), updatedAt, r.UUID
	c, err := projectdb.ChangeOne[Container](ctx, p, audit.Change{SQL: `
		update storage.containers` + values + `, updated_by = @user,
		    name = coalesce(@name, name), description = coalesce(@description, description)
		where ` + byUUID + ` and (@version::timestamptz is null or updated_at = @version)
		returning ` + containerColumns, Args: args})
	if fault.Is(err, fault.NotFound) && updatedAt != nil {
		return c, fault.New(fault.Conflict, "the container was changed concurrently").WithCode("busy").WithCause(err)
	}

	return c, containerTaken(err)
}

// askForContainer asks whether the policies allow a change to a container. It returns the container
// by UUID, and the time of the version they decided on; nil if no policies apply. It fails with
// NotFound if the container does not exist or they hide it.
func askForContainer(
	ctx context.Context, p *projectdb.Project, a actor.Actor, r ContainerRef, change string, args pgx.StrictNamedArgs,
) (ContainerRef, *time.Time, error) {
	if a.BypassesPolicies() {
		if r.UUID != uuid.Nil {
			return r, nil, nil
		}

		id, err := pg.Value[uuid.UUID](ctx, p.Trusted(), `select uuid from storage.containers where `+byID,
			pgx.StrictNamedArgs{"id": r.ID})
		return ContainerRef{UUID: id}, nil, err
	}

	question := maps.Clone(args)
	question["id"] = r.ID
	v, err := askForOne(ctx, p, a, change+` where `+byID, question)

	return ContainerRef{UUID: v.UUID}, &v.UpdatedAt, err
}

// DeleteContainer deletes a container and returns its last state. With force it deletes the files
// too: they disappear at once, then [Discard] removes the bytes. It fails with NotFound if the
// container does not exist, or the policies hide it or refuse, and without force with Conflict if
// it has files.
func DeleteContainer(
	ctx context.Context, p *projectdb.Project, a actor.Actor, r ContainerRef, force bool,
) (Container, error) {
	r, _, err := askForContainer(ctx, p, a, r, `delete from storage.buckets`, pgx.StrictNamedArgs{})
	if err != nil {
		return Container{}, err
	}

	return pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (Container, error) {
		// The row lock keeps new files out, since an upload locks the row before it adds a file.
		c, err := pg.One[Container](ctx, tx,
			`select `+containerColumns+` from storage.containers where `+byUUID+` for update`,
			pgx.StrictNamedArgs{"project": p.UUID, "uuid": r.UUID})
		if err != nil {
			return c, err
		}

		if c.TotalFiles == 0 {
			_, err = pg.Exec(ctx, tx, `delete from storage.containers where uuid = @id`,
				pgx.StrictNamedArgs{"id": c.UUID})
			return c, err
		}

		if !force {
			return c, fault.New(fault.Conflict, "the container has %d files; set force=true to delete them too",
				c.TotalFiles).WithCode("in_use")
		}

		_, err = pg.Exec(ctx, tx, `update storage.containers set deleting = true, name = uuid::text where uuid = @id`,
			pgx.StrictNamedArgs{"id": c.UUID})
		return c, err
	})
}

// EmptyContainer deletes a container's files as far as the policies allow, in batches, until ctx
// ends. [Discard] removes their bytes.
func EmptyContainer(ctx context.Context, p *projectdb.Project, a actor.Actor, container uuid.UUID) error {
	listing := EntryListing{Limit: MaxEntries}
	for {
		entries, err := ListEntries(ctx, p, a, container, listing)
		if err != nil || len(entries) == 0 {
			return err
		}

		names := make([]string, 0, len(entries))
		for _, e := range entries {
			names = append(names, e.Name)
		}

		if _, err := DeleteFilesByName(ctx, p, a, container, names); err != nil {
			return err
		}
		listing.After = names[len(names)-1]
	}
}
