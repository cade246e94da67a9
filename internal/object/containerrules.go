package object

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// File size limits in bytes.
const (
	MaxFileSize     int64 = 5 << 30  // upper bound for a container's limit
	DefaultFileSize int64 = 50 << 20 // a container's default limit
)

const maxDescriptionLength = 500 // characters

var (
	containerName = regexp.MustCompile(`^[A-Za-z0-9_-]{3,63}$`)

	// bucketName matches the names that Supabase allows.
	bucketName = regexp.MustCompile(
		`^[A-Za-z0-9_!.*'()&$@=;:+,?-]([A-Za-z0-9_!.*'() &$@=;:+,?-]{0,98}[A-Za-z0-9_!.*'()&$@=;:+,?-])?$`)
)

// reservedNames are words that stand in a bucket's place in Storage API paths, and names that
// clients remove from a path. A bucket with such a name would be a different one in some path.
var reservedNames = []string{".", "..", "authenticated", "copy", "info", "list", "list-v2", "move", "public", "sign",
	"upload"}

// IsReserved reports whether a new container can't have the name.
func IsReserved(name string) bool { return slices.Contains(reservedNames, name) }

// check validates and normalizes the values. Applications may send an update without any.
func (u *ContainerUpdate) check(a actor.Actor) error {
	if a.Member && *u == (ContainerUpdate{}) {
		return fault.NothingToChange()
	}
	return checkContainer(nil, u.Name, u.Description, u.MaxFileSize, u.Allowed)
}

// checkContainer validates the values that are not nil and reports every invalid field. It
// normalizes mimeTypes in place. An application that chooses an ID may choose more names.
func checkContainer(id, name, description *string, size *int64, mimeTypes *[]string) error {
	names, want := containerName, "must be 3 to 63 letters, digits, _ or -"
	if id != nil {
		names, want = bucketName, "must be a name that Supabase allows"
	}

	var invalid []fault.Field
	reject := func(field, code, message string) {
		invalid = append(invalid, fault.Field{Name: field, Code: code, Message: message})
	}

	if id != nil && !names.MatchString(*id) {
		reject("id", "invalid_format", want)
	}
	if name != nil && !names.MatchString(*name) {
		reject("name", "invalid_format", want)
	}
	if description != nil && (!utf8.ValidString(*description) || strings.ContainsRune(*description, 0)) {
		reject("description", "invalid_format", "must be text without NUL")
	}
	if description != nil && utf8.RuneCountInString(*description) > maxDescriptionLength {
		reject("description", "too_long", fmt.Sprintf("must be at most %d characters", maxDescriptionLength))
	}
	if size != nil && (*size < 1 || *size > MaxFileSize) {
		reject("max_file_size", "out_of_range", fmt.Sprintf("must be 1 to %d bytes", MaxFileSize))
	}

	if mimeTypes != nil {
		clean, badType := normalizeMimeTypes(*mimeTypes)
		if badType != nil {
			invalid = append(invalid, *badType)
		}

		*mimeTypes = clean
	}

	if len(invalid) == 0 {
		return nil
	}

	return &fault.Error{Kind: fault.Unprocessable, Detail: invalid[0].Name + " " + invalid[0].Message, Fields: invalid}
}

// checkReserved fails with Unprocessable for a reserved ID or name.
func checkReserved(id, name string) error {
	if IsReserved(id) {
		return nameReserved("id")
	}
	if IsReserved(name) {
		return nameReserved("name")
	}

	return nil
}

func nameReserved(field string) *fault.Error {
	return fault.OnField(fault.Unprocessable, field, "reserved",
		"is a word of the paths of the Storage API, such as public or list: choose another one")
}

// containerTaken turns a unique violation on a container's name or ID into Conflict.
func containerTaken(err error) error {
	switch {
	case pg.Violates(err, "containers_name_key"):
		return fault.OnField(fault.Conflict, "name", "already_exists", "is taken by another container").WithCause(err)
	case pg.Violates(err, "containers_id_key"):
		return fault.OnField(fault.Conflict, "id", "already_exists", "is taken by another container").WithCause(err)
	}

	return err
}
