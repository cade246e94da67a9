// Package object owns a project's containers and files: names, size limits, media types, quotas,
// resumable and signed uploads, and variants of pictures. The bytes of a file are a blob of their
// own, stored by package blob under a key that reveals nothing about the file. The project's
// database maps files to blobs.
package object

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Container holds files.
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
	URL       string    `json:"url" db:"-" doc:"Base URL of the files."`
	CreatedAt time.Time `json:"createdAt"`
	CreatedBy uuid.UUID `json:"createdBy" format:"uuid"`
	UpdatedAt time.Time `json:"updatedAt"`
	UpdatedBy uuid.UUID `json:"updatedBy" format:"uuid"`
}

const containerColumns = `
	uuid, @project::uuid as project_uuid, name, description, is_public, max_file_size, allowed_mime_types,
	total_files, created_at, created_by, updated_at, updated_by`

// NewContainer holds the values of a container to create.
type NewContainer struct {
	Name        string // 3 to 63 letters, digits, _ or -, not reserved
	Description string // up to 500 characters
	IsPublic    bool
	MaxFileSize *int64 // bytes, 1 to MaxFileSize; nil means DefaultFileSize
	Allowed     []string
}

// ContainerUpdate holds the values to change; nil leaves a value unchanged. The rules are those of
// [NewContainer].
type ContainerUpdate struct {
	Name        *string
	Description *string
	IsPublic    *bool
	MaxFileSize *int64
	Allowed     *[]string
}

// Limits of the size of a file, in bytes.
const (
	MaxFileSize     int64 = 5 << 30  // upper bound of a container's limit
	DefaultFileSize int64 = 50 << 20 // default limit of a container
)

const maxDescriptionLength = 500 // characters

var containerName = regexp.MustCompile(`^[A-Za-z0-9_-]{3,63}$`)

// CreateContainer creates a container in project p on behalf of user. It fails with Unprocessable
// on every invalid field, and with Conflict on name if the name is taken.
func CreateContainer(ctx context.Context, p *projectdb.Project, user uuid.UUID, n NewContainer) (Container, error) {
	size := DefaultFileSize
	if n.MaxFileSize != nil {
		size = *n.MaxFileSize
	}

	if err := checkContainer(&n.Name, &n.Description, &size, &n.Allowed); err != nil {
		return Container{}, err
	}
	if IsReserved(n.Name) {
		return Container{}, nameReserved()
	}

	id, err := uuid.NewV7()
	if err != nil {
		return Container{}, err
	}

	audit.CreatedUUID(ctx, id)
	c, err := projectdb.ChangeOne[Container](ctx, p, audit.Change{SQL: `
		insert into storage.containers
			(uuid, name, description, is_public, max_file_size, allowed_mime_types, created_by, updated_by)
		values (@id, @name, @description, @public, @max, @allowed, @user, @user)
		returning ` + containerColumns,
		Args: pgx.StrictNamedArgs{"project": p.UUID, "id": id, "name": n.Name, "description": n.Description,
			"public": n.IsPublic, "max": size, "allowed": n.Allowed, "user": user}})

	return c, containerNameTaken(err)
}

// UpdateContainer changes a container of project p on behalf of user. It fails with NotFound if it
// does not exist, with Unprocessable on every invalid field or if u is empty, and with Conflict on
// name if the name is taken. Existing files stay, even if they exceed a new size limit.
func UpdateContainer(
	ctx context.Context, p *projectdb.Project, user, id uuid.UUID, u ContainerUpdate,
) (Container, error) {
	if invalid := u.check(); invalid != nil {
		if _, err := GetContainer(ctx, p, id); err != nil { // NotFound takes precedence
			return Container{}, err
		}
		return Container{}, invalid
	}

	if u.Name != nil && IsReserved(*u.Name) {
		present, err := GetContainer(ctx, p, id)
		if err != nil {
			return present, err
		}
		if present.Name != *u.Name { // an older release has taken such names
			return Container{}, nameReserved()
		}
	}

	c, err := projectdb.ChangeOne[Container](ctx, p, audit.Change{SQL: `
		update storage.containers
		set name = coalesce(@name, name), description = coalesce(@description, description),
		    is_public = coalesce(@public, is_public), max_file_size = coalesce(@max, max_file_size),
		    allowed_mime_types = coalesce(@allowed, allowed_mime_types),
		    updated_by = @user, updated_at = now()
		where uuid = @id and not deleting
		returning ` + containerColumns,
		Args: pgx.StrictNamedArgs{"project": p.UUID, "id": id, "name": u.Name, "description": u.Description,
			"public": u.IsPublic, "max": u.MaxFileSize, "allowed": u.Allowed, "user": user}})

	return c, containerNameTaken(err)
}

// GetContainer returns a container of project p. It fails with NotFound if it does not exist.
func GetContainer(ctx context.Context, p *projectdb.Project, id uuid.UUID) (Container, error) {
	return pg.One[Container](ctx, p.Trusted(),
		`select `+containerColumns+` from storage.containers where uuid = @id and not deleting`,
		pgx.StrictNamedArgs{"project": p.UUID, "id": id})
}

// ListContainers returns a page of the containers of project p and their total number. Sort keys
// are name, createdAt and updatedAt.
func ListContainers(ctx context.Context, p *projectdb.Project, page pg.Page) ([]Container, int64, error) {
	return pg.List[Container](ctx, p.Trusted(), pg.Listing{
		Columns: containerColumns,
		From:    `storage.containers where not deleting`,
		Sorts:   map[string]string{"name": "name", "createdAt": "created_at", "updatedAt": "updated_at"},
		Tie:     "uuid",
	}, page, pgx.StrictNamedArgs{"project": p.UUID})
}

// DeleteContainer deletes a container of project p and returns its last state. With force it
// deletes the files too: they disappear at once, and [Discard] removes their bytes. It fails with
// NotFound if the container does not exist, and without force with Conflict if it has files.
func DeleteContainer(ctx context.Context, p *projectdb.Project, id uuid.UUID, force bool) (Container, error) {
	return pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (Container, error) {
		// The row lock keeps new files out, since an upload locks the row before it adds a file.
		if _, err := pg.Value[uuid.UUID](ctx, tx,
			`select uuid from storage.containers where uuid = @id and not deleting for update`,
			pgx.StrictNamedArgs{"id": id}); err != nil {
			return Container{}, err
		}

		c, err := pg.One[Container](ctx, tx, `select `+containerColumns+` from storage.containers where uuid = @id`,
			pgx.StrictNamedArgs{"project": p.UUID, "id": id})
		if err != nil {
			return c, err
		}

		if c.TotalFiles == 0 {
			_, err = pg.Exec(ctx, tx, `delete from storage.containers where uuid = @id`, pgx.StrictNamedArgs{"id": id})
			return c, err
		}

		if !force {
			return c, fault.New(fault.Conflict, "the container has %d files; set force=true to delete them too",
				c.TotalFiles).WithCode("in_use")
		}

		_, err = pg.Exec(ctx, tx, `update storage.containers set deleting = true, name = uuid::text where uuid = @id`,
			pgx.StrictNamedArgs{"id": id})
		return c, err
	})
}

func (u ContainerUpdate) check() error {
	if u == (ContainerUpdate{}) {
		return fault.NothingToChange()
	}
	return checkContainer(u.Name, u.Description, u.MaxFileSize, u.Allowed)
}

// checkContainer validates the values that are not nil and reports every invalid field. It
// normalizes allowed in place.
func checkContainer(name, description *string, size *int64, allowed *[]string) error {
	var invalid []fault.Field
	if name != nil && !containerName.MatchString(*name) {
		invalid = append(invalid, fault.Field{
			Name:    "name",
			Code:    "invalid_format",
			Message: "must be 3 to 63 letters, digits, _ or -",
		})
	}
	if description != nil && (!utf8.ValidString(*description) || strings.ContainsRune(*description, 0)) {
		invalid = append(invalid, fault.Field{
			Name:    "description",
			Code:    "invalid_format",
			Message: "must be text without NUL",
		})
	}
	if description != nil && utf8.RuneCountInString(*description) > maxDescriptionLength {
		invalid = append(invalid, fault.Field{
			Name:    "description",
			Code:    "too_long",
			Message: fmt.Sprintf("must be at most %d characters", maxDescriptionLength),
		})
	}
	if size != nil && (*size < 1 || *size > MaxFileSize) {
		invalid = append(invalid, fault.Field{
			Name:    "max_file_size",
			Code:    "out_of_range",
			Message: fmt.Sprintf("must be 1 to %d bytes", MaxFileSize),
		})
	}

	if allowed != nil {
		clean, badType := normalizeMimeTypes(*allowed)
		if badType != nil {
			invalid = append(invalid, *badType)
		}

		*allowed = clean
	}

	if len(invalid) == 0 {
		return nil
	}

	return &fault.Error{Kind: fault.Unprocessable, Detail: invalid[0].Name + " " + invalid[0].Message, Fields: invalid}
}

func nameReserved() *fault.Error {
	return fault.OnField(fault.Unprocessable, "name", "reserved",
		"is a word of the paths of the Storage API, such as public or list: choose another one")
}

func containerNameTaken(err error) error {
	if pg.Violates(err, "containers_name_key") {
		return fault.OnField(fault.Conflict, "name", "already_exists", "is taken by another container").WithCause(err)
	}
	return err
}
