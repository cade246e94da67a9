package storageapi

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/object"
)

const defaultLimit = 100 // entries per list

// entry is a list entry. A folder has a name only.
type entry struct {
	Key            string          `json:"key,omitempty"`
	Name           string          `json:"name"`
	ID             *uuid.UUID      `json:"id"`
	UpdatedAt      *timestamp      `json:"updated_at"`
	CreatedAt      *timestamp      `json:"created_at"`
	LastAccessedAt *timestamp      `json:"last_accessed_at"`
	Metadata       *objectMetadata `json:"metadata"`
}

func newEntry(o object.Entry) entry {
	if o.UUID == nil {
		return entry{Name: o.Name}
	}

	createdAt, updatedAt := timestamp(*o.CreatedAt), timestamp(*o.UpdatedAt)
	return entry{Name: o.Name, ID: o.UUID, CreatedAt: &createdAt, UpdatedAt: &updatedAt, LastAccessedAt: &updatedAt,
		Metadata: metadataOf(*o.Size, *o.MimeType, o.SHA256, o.Cache, *o.UpdatedAt)}
}

type sortBy struct{ Column, Order string }

// apply sets the listing's order.
func (s sortBy) apply(l *object.EntryListing) error {
	switch s.Column {
	case "", "name", "created_at", "updated_at":
		l.Sort = s.Column
	case "last_accessed_at": // equals updated_at
		l.Sort = "updated_at"
	default:
		return fault.New(fault.Invalid, "body/sortBy/column must be equal to one of the allowed values")
	}

	var err error
	l.Descending, err = isDescending(s.Order, "body/sortBy/order")

	return err
}

// isDescending reads a list's direction, asc or desc. name is the parameter's.
func isDescending(order, name string) (bool, error) {
	switch strings.ToLower(order) {
	case "", "asc":
		return false, nil
	case "desc":
		return true, nil
	}

	return false, fault.New(fault.Invalid, "%s must be equal to one of the allowed values", name)
}

// pageSize returns the entries per page for a requested limit. As in Supabase, a larger limit is
// served with the largest page.
func pageSize(limit int) (int, error) {
	if limit < 1 {
		return 0, fault.New(fault.Invalid, "body/limit must be at least 1")
	}
	return min(limit, object.MaxEntries), nil
}

// list lists a folder in a bucket. Names are relative to the folder.
func (c *call) list(path string) error {
	in := struct {
		Prefix, Search string
		Limit, Offset  int
		SortBy         sortBy
	}{Limit: defaultLimit}
	if err := c.decode(&in); err != nil {
		return err
	}

	b, _, err := c.bucketOf(path)
	if err != nil {
		return err
	}

	if in.Prefix = strings.Trim(in.Prefix, "/"); in.Prefix != "" {
		in.Prefix += "/"
	}

	limit, err := pageSize(in.Limit)
	if err != nil {
		return err
	}
	if in.Offset < 0 || in.Offset > object.MaxEntryOffset {
		return fault.New(fault.Invalid, "body/offset must be from 0 to %d; list longer ones by POST "+
			"/object/list-v2, whose pages follow a cursor", object.MaxEntryOffset)
	}

	l := object.EntryListing{Prefix: in.Prefix, Delimiter: "/", Search: in.Search, Offset: in.Offset, Limit: limit}
	if err := in.SortBy.apply(&l); err != nil {
		return err
	}

	objects, err := object.ListEntries(c.r.Context(), c.Database, c.actor, b.UUID, l)
	if err != nil {
		return err
	}

	entries := make([]entry, 0, len(objects))
	for _, o := range objects {
		e := newEntry(o)
		e.Name = strings.TrimSuffix(strings.TrimPrefix(e.Name, in.Prefix), "/")
		entries = append(entries, e)
	}

	return c.respond(http.StatusOK, entries)
}

// cursor is the next page's position in a list: this page's last entry in list order. Objects that
// are created or deleted meanwhile move no page.
type cursor struct {
	After     string
	AfterTime *time.Time `json:",omitempty"` // an object's time in an order by time
	Order     sortBy
}

// cursorBehind returns the cursor after an entry.
func cursorBehind(e object.Entry, order sortBy) cursor {
	c := cursor{After: e.Name, Order: order}
	switch order.Column {
	case "created_at":
		c.AfterTime = e.CreatedAt
	case "updated_at", "last_accessed_at":
		c.AfterTime = e.UpdatedAt
	}

	return c
}

func (c cursor) encode() (string, error) {
	text, err := json.Marshal(c)
	return base64.RawURLEncoding.EncodeToString(text), err
}

func parseCursor(text string) (position cursor, err error) {
	body, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(body, &position)
	}
	if err == nil && (position.After == "" || !object.IsNamePrefix(position.After)) {
		err = errors.New("the cursor has no entry")
	}
	if err != nil {
		return position, fault.New(fault.Invalid, "Invalid Parameter continuation token").WithCode("InvalidParameter").
			WithCause(err)
	}

	return position, nil
}

// listPage is the response to a list with a cursor.
type listPage struct {
	HasNext    bool    `json:"hasNext"`
	NextCursor string  `json:"nextCursor,omitempty"`
	Folders    []entry `json:"folders"`
	Objects    []entry `json:"objects"`
}

// listByCursor lists a bucket's objects by prefix, with or without folders.
func (c *call) listByCursor(path string) error {
	in := struct {
		Prefix, Cursor string
		Limit          int
		Delimited      bool `json:"with_delimiter"`
		SortBy         sortBy
	}{Limit: object.MaxEntries}
	if err := c.decode(&in); err != nil {
		return err
	}

	b, _, err := c.bucketOf(path)
	if err != nil {
		return err
	}

	position := cursor{Order: in.SortBy}
	if in.Cursor != "" {
		if position, err = parseCursor(in.Cursor); err != nil {
			return err
		}
	}

	limit, err := pageSize(in.Limit)
	if err != nil {
		return err
	}

	l := object.EntryListing{Prefix: in.Prefix, After: position.After, AfterTime: position.AfterTime, Limit: limit + 1}
	if in.Delimited {
		l.Delimiter = "/"
	}
	if err := position.Order.apply(&l); err != nil {
		return err
	}

	objects, err := object.ListEntries(c.r.Context(), c.Database, c.actor, b.UUID, l)
	if err != nil {
		return err
	}

	page := listPage{HasNext: len(objects) > limit, Folders: []entry{}, Objects: []entry{}}
	if page.HasNext {
		objects = objects[:limit]
		if page.NextCursor, err = cursorBehind(objects[limit-1], position.Order).encode(); err != nil {
			return err
		}
	}

	for _, o := range objects {
		e := newEntry(o)
		if in.Delimited {
			e.Key = strings.TrimSuffix(o.Name[strings.LastIndexByte(in.Prefix, '/')+1:], "/")
		}

		if e.ID == nil {
			page.Folders = append(page.Folders, e)
		} else {
			page.Objects = append(page.Objects, e)
		}
	}

	return c.respond(http.StatusOK, page)
}
