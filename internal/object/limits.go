package object

import (
	"mime"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/fault"
)

// uploadLimits holds the limits of an upload: those of its container and the quota of its project.
type uploadLimits struct {
	MaxFileSize      int64
	AllowedMimeTypes []string
	MaxBytes         int64 `db:"-"` // quota of the project
	FreeBytes        int64 `db:"-"` // unused bytes of the quota
}

const (
	maxMimeTypes      = 100
	maxMimeTypeLength = 127 // bytes
)

// checkType fails with Unprocessable on field if the container does not accept files of a type.
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

// normalizeMimeTypes normalizes a list of media types: lower case, without duplicates, in its
// order.
func normalizeMimeTypes(types []string) ([]string, *fault.Field) {
	clean := make([]string, 0, len(types))
	for _, t := range types {
		t = strings.ToLower(strings.TrimSpace(t))
		family, sub, ok := strings.Cut(t, "/")
		plain, params, err := mime.ParseMediaType(strings.TrimSuffix(t, "*") + "x")
		if sub != "*" {
			plain, params, err = mime.ParseMediaType(t)
		}

		malformed := !ok || err != nil || plain == "" || len(params) > 0 || len(t) > maxMimeTypeLength
		wildcard := family == "" || family == "*" || (strings.Contains(sub, "*") && sub != "*")
		if malformed || wildcard {
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
