package form

import (
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/cache"
)

const (
	maxCachedForms = 1000
	maxCachedBytes = 8 << 20

	fieldBytes = 1 << 10 // field size without texts
)

// FieldCache keeps form fields in memory, so that a response takes one round trip. Its fields can
// be outdated: the statement that stores a response compares them with the current version. The
// zero value stays empty. It is safe for concurrent use.
type FieldCache struct {
	forms *cache.Cache[uuid.UUID, fieldSet]
}

// NewFieldCache returns an empty cache.
func NewFieldCache() FieldCache {
	return FieldCache{cache.New[uuid.UUID, fieldSet](cache.Limits{Entries: maxCachedForms, Weight: maxCachedBytes})}
}

// put keeps a form's fields, unless they are no stored version.
func (c FieldCache) put(form uuid.UUID, d fieldSet) {
	if d.frozenAt != nil {
		c.forms.PutWeighted(form, d, d.size())
	}
}

// size estimates the fields' memory in bytes.
func (d fieldSet) size() int64 {
	bytes := 0
	for _, f := range d.fields {
		bytes += fieldBytes + len(f.Label)
		for _, text := range []*string{f.Name, f.Description, f.DefaultValue, f.Options, f.Pattern} {
			if text != nil {
				bytes += len(*text)
			}
		}
	}

	return int64(bytes)
}
