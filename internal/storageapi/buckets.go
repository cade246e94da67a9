package storageapi

import (
	"encoding/json"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/object"
)

// maxBucketList is the maximum number of buckets in a list.
const maxBucketList = 1000

// bucketRow is a bucket in responses.
type bucketRow struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Owner     string    `json:"owner"` // "" if a key or a member created it
	Public    bool      `json:"public"`
	Type      string    `json:"type,omitempty"`
	Limit     *int64    `json:"file_size_limit"`
	MimeTypes []string  `json:"allowed_mime_types"`
	CreatedAt timestamp `json:"created_at"`
	UpdatedAt timestamp `json:"updated_at"`
}

func newBucketRow(b object.Container) bucketRow {
	row := bucketRow{ID: b.ID, Name: b.Name, Public: b.IsPublic, CreatedAt: timestamp(b.CreatedAt),
		UpdatedAt: timestamp(b.UpdatedAt)}
	if b.Owner != nil && *b.Owner != uuid.Nil {
		row.Owner = b.Owner.String()
	}
	if b.MaxFileSize < object.MaxFileSize {
		row.Limit = &b.MaxFileSize
	}
	if len(b.Allowed) > 0 {
		row.MimeTypes = b.Allowed
	}

	return row
}

func (c *call) listBuckets(string) error {
	query := c.r.URL.Query()
	l := object.ContainerListing{Search: query.Get("search"), Sort: query.Get("sortColumn"), Limit: maxBucketList}
	if l.Sort != "" && !slices.Contains(object.ContainerSorts, l.Sort) {
		return fault.New(fault.Invalid, "querystring/sortColumn must be equal to one of the allowed values")
	}

	var err error
	if l.Descending, err = isDescending(query.Get("sortOrder"), "querystring/sortOrder"); err != nil {
		return err
	}

	for name, value := range map[string]*int{"limit": &l.Limit, "offset": &l.Offset} {
		text := query.Get(name)
		n, err := strconv.ParseInt(text, 10, 32)
		if text != "" && (err != nil || n < 0) {
			return fault.New(fault.Invalid, "querystring/%s must be a number", name)
		}
		if text != "" {
			*value = int(n)
		}
	}

	l.Limit = min(l.Limit, maxBucketList)
	containers, err := object.SearchContainers(c.r.Context(), c.Database, c.actor, l)
	if err != nil {
		return err
	}

	rows := make([]bucketRow, 0, len(containers))
	for _, b := range containers {
		row := newBucketRow(b)
		row.Type = b.Type
		rows = append(rows, row)
	}

	return c.respond(http.StatusOK, rows)
}

func (c *call) getBucket(id string) error {
	b, err := object.GetContainer(c.r.Context(), c.Database, c.actor, object.ContainerRef{ID: id})
	if err != nil {
		return missingBucket(err)
	}

	return c.respond(http.StatusOK, newBucketRow(b))
}

// bucketBody is the request body that creates or changes a bucket.
type bucketBody struct {
	ID, Name  string
	Type      *string // only STANDARD
	Public    *bool
	Limit     json.RawMessage `json:"file_size_limit"`    // absent, null, a number of bytes, or text such as 20MB
	MimeTypes json.RawMessage `json:"allowed_mime_types"` // absent, null or a list
}

// change returns the values to set.
func (b bucketBody) change() (object.ContainerUpdate, error) {
	change := object.ContainerUpdate{IsPublic: b.Public}
	if b.Type != nil && *b.Type != "STANDARD" {
		return change, fault.New(fault.Invalid, "body/type must be STANDARD").WithCode("NotImplemented")
	}

	if len(b.Limit) > 0 {
		limit, err := parseSize(b.Limit)
		if err != nil {
			return change, err
		}
		change.MaxFileSize = &limit
	}

	if len(b.MimeTypes) > 0 {
		types := []string{}
		if err := json.Unmarshal(b.MimeTypes, &types); err != nil {
			return change, fault.New(fault.Invalid, "body/allowed_mime_types must be array").WithCause(err)
		}
		change.Allowed = &types
	}

	return change, nil
}

var sizeText = regexp.MustCompile(`(?i)^([0-9]+(?:\.[0-9]+)?)(gb|mb|kb|b)$`)

// parseSize returns a size limit in bytes. Units are decimal, and nothing and 0 mean no limit.
func parseSize(value json.RawMessage) (int64, error) {
	var size float64
	var text string
	invalid := fault.New(fault.Invalid, "Invalid file size format, hint: use 20GB / 20MB / 30KB / 3B")

	switch {
	case string(value) == "null":
		return object.MaxFileSize, nil
	case json.Unmarshal(value, &text) == nil:
		parts := sizeText.FindStringSubmatch(text)
		if parts == nil {
			return 0, invalid
		}

		number, err := strconv.ParseFloat(parts[1], 64)
		if err != nil {
			return 0, invalid
		}
		size = number * map[string]float64{"gb": 1e9, "mb": 1e6, "kb": 1e3, "b": 1}[strings.ToLower(parts[2])]
	case json.Unmarshal(value, &size) != nil || size < 0:
		return 0, invalid
	}

	switch {
	case size > float64(object.MaxFileSize):
		return 0, fault.New(fault.TooLarge, "the limit exceeds that of the instance")
	case size == 0:
		return object.MaxFileSize, nil
	}

	return int64(math.Ceil(size)), nil
}

func (c *call) createBucket(string) error {
	var in bucketBody
	if err := c.decode(&in); err != nil {
		return err
	}

	change, err := in.change()
	if err != nil {
		return err
	}
	if in.ID == "" {
		in.ID = in.Name
	}

	n := object.NewContainer{ID: in.ID, Name: in.Name, IsPublic: change.IsPublic != nil && *change.IsPublic,
		MaxFileSize: change.MaxFileSize}
	if n.MaxFileSize == nil {
		n.MaxFileSize = new(object.MaxFileSize)
	}
	if change.Allowed != nil {
		n.Allowed = *change.Allowed
	}

	if _, err := object.CreateContainer(c.r.Context(), c.Database, c.actor, n); err != nil {
		return bucketError(err, n)
	}

	return c.respond(http.StatusOK, map[string]string{"name": in.Name})
}

func (c *call) updateBucket(id string) error {
	var in bucketBody
	if err := c.decode(&in); err != nil {
		return err
	}

	change, err := in.change()
	if err != nil {
		return err
	}
	if _, err := object.UpdateContainer(c.r.Context(), c.Database, c.actor, object.ContainerRef{ID: id},
		change); err != nil {
		return missingBucket(err)
	}

	return c.respond(http.StatusOK, map[string]string{"message": "Successfully updated"})
}

func (c *call) deleteBucket(id string) error {
	_, err := object.DeleteContainer(c.r.Context(), c.Database, c.actor, object.ContainerRef{ID: id}, false)
	if fault.Is(err, fault.Conflict) && fault.Of(err).Code == "in_use" {
		return fault.New(fault.Conflict, "the bucket is not empty").WithCode("ResourceNotEmpty").WithCause(err)
	}
	if err != nil {
		return missingBucket(err)
	}

	return c.respond(http.StatusOK, map[string]string{"message": "Successfully deleted"})
}

// emptyBucket deletes a bucket's objects. The message is the contract's: the objects are gone when
// it is sent, their bytes soon after.
func (c *call) emptyBucket(rest string) error {
	id, ok := strings.CutSuffix(rest, "/empty")
	if !ok {
		return c.noRoute()
	}

	b, err := object.GetContainer(c.r.Context(), c.Database, c.actor, object.ContainerRef{ID: id})
	if err != nil {
		return missingBucket(err)
	}

	err = object.EmptyContainer(c.r.Context(), c.Database, c.actor, b.UUID)
	c.Discard(c.r.Context(), c.Database.UUID)
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, map[string]string{
		"message": "Empty bucket has been queued. Completion may take up to an hour."})
}

// bucketError gives the contract's error codes to failures to create a bucket.
func bucketError(err error, n object.NewContainer) error {
	e := fault.Of(err)
	if len(e.Fields) == 0 {
		return err
	}

	name, ok := map[string]string{"id": n.ID, "name": n.Name}[e.Fields[0].Name]
	switch {
	case !ok:
		return err
	case e.Kind == fault.Conflict:
		return fault.New(fault.Conflict, "the bucket already exists").WithCode("BucketAlreadyExists").WithCause(err)
	case e.Fields[0].Code == "reserved":
		return fault.New(fault.Invalid, "Bucket name invalid: %q is a word of the API's paths, choose another one", name).
			WithCode("InvalidBucketName").WithCause(err)
	}

	return fault.New(fault.Invalid, "Bucket name invalid").WithCode("InvalidBucketName").WithCause(err)
}

// missingBucket gives the contract's error code to the failure to find a bucket.
func missingBucket(err error) error {
	if fault.Is(err, fault.NotFound) {
		return errNoBucket.WithCause(err)
	}
	return err
}
