package form

import (
	"sync"

	"github.com/google/uuid"
)

const (
	maxCachedForms = 1000
	maxCachedBytes = 8 << 20

	fieldBytes = 1 << 10 // of a field without its texts
)

// FieldCache keeps the fields of forms in memory, so that a response takes one round trip. What it
// returns can be outdated: the statement that stores a response compares it. The zero value is
// empty, a nil FieldCache stays so. It is safe for concurrent use.
type FieldCache struct {
	mu    sync.Mutex
	forms map[uuid.UUID]fieldSet
	bytes int
}

func (c *FieldCache) get(form uuid.UUID) (d fieldSet, ok bool) {
	if c == nil {
		return d, false
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	d, ok = c.forms[form]
	return d, ok
}

// put keeps the fields of a form, unless they are no stored version.
func (c *FieldCache) put(form uuid.UUID, d fieldSet) {
	if c == nil || d.frozenAt == nil {
		return
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	c.removeLocked(form)

	for other := range c.forms {
		if len(c.forms) < maxCachedForms && c.bytes+d.size() <= maxCachedBytes {
			break
		}
		c.removeLocked(other) // an arbitrary one
	}

	if c.forms == nil {
		c.forms = map[uuid.UUID]fieldSet{}
	}

	c.forms[form] = d
	c.bytes += d.size()
}

func (c *FieldCache) removeLocked(form uuid.UUID) {
	if d, ok := c.forms[form]; ok {
		delete(c.forms, form)
		c.bytes -= d.size()
	}
}

// size estimates the memory of the fields in bytes.
func (d fieldSet) size() int {
	bytes := 0
	for _, f := range d.fields {
		bytes += fieldBytes + len(f.Label)
		for _, text := range []*string{f.Name, f.Description, f.DefaultValue, f.Options, f.Pattern} {
			if text != nil {
				bytes += len(*text)
			}
		}
	}

	return bytes
}
