package storageapi

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/pg"
)

const (
	maxMetadata = 64 << 10 // bytes in an object's metadata
	maxNames    = 1000     // objects per request
)

// bucketOf returns the bucket and the object name in the rest of a path.
func (c *call) bucketOf(path string) (object.Container, string, error) {
	id, name, _ := strings.Cut(path, "/")
	b, err := object.GetContainer(c.r.Context(), c.Database, actor.Service(), object.ContainerRef{ID: id})

	return b, name, missingBucket(err)
}

// fileOf identifies an object by its name in a bucket.
func fileOf(b object.Container, name string) object.FileRef {
	return object.FileRef{Container: b.UUID, Name: name}
}

func (c *call) upload(path string) error {
	b, name, err := c.bucketOf(path)
	if err != nil {
		return err
	}

	return c.store(b, name, c.r.Header.Get("X-Upsert") == "true")
}

func (c *call) replace(path string) error {
	b, name, err := c.bucketOf(path)
	if err != nil {
		return err
	}

	return c.store(b, name, true)
}

// cacheControl matches the Cache-Control values that objects may have.
var cacheControl = regexp.MustCompile(`^[ -~]{0,200}$`)

// checkCacheControl fails with Invalid for a value that no download can send as a header.
func checkCacheControl(value string) error {
	if !cacheControl.MatchString(value) {
		return fault.New(fault.Invalid, "cache-control must be up to 200 ASCII characters")
	}
	return nil
}

// store stores an object, whose bytes are the body or a form part in it.
func (c *call) store(b object.Container, name string, upsert bool) error {
	n := object.NewFile{Upsert: upsert, CacheControl: c.r.Header.Get("Cache-Control")}
	n.FullFileName, n.MimeType = name, c.r.Header.Get("Content-Type")
	n.Length = max(c.r.ContentLength, 0)
	body := httpx.NewPacedReader(c.w, c.r)
	n.Content = body

	metadata, err := base64.StdEncoding.DecodeString(c.r.Header.Get("X-Metadata"))
	if err != nil {
		return fault.New(fault.Invalid, "x-metadata must be JSON in base64")
	}

	if kind, params, err := mime.ParseMediaType(n.MimeType); err == nil && kind == "multipart/form-data" {
		if metadata, err = readForm(multipart.NewReader(body, params["boundary"]), &n); err != nil {
			return err
		}
	}

	if n.Metadata, err = checkMetadata(metadata); err != nil {
		return err
	}
	if err := checkCacheControl(n.CacheControl); err != nil {
		return err
	}

	n.Content = uploadedBody{n.Content}
	f, discard, err := object.CreateFile(c.r.Context(), c.Database, c.Blobs, c.actor, b.Ref(), n)
	if discard {
		c.Discard(c.r.Context(), c.Database.UUID)
	}
	if fault.Of(err) != nil && fault.Of(err).CodeWord() == "mime_type_not_allowed" {
		kind, _, _ := strings.Cut(n.MimeType, ";")
		return fault.New(fault.Unprocessable, "mime type %s is not supported", kind).
			WithCode("InvalidMimeType").WithCause(err)
	}
	if err != nil {
		return keyError(err, name)
	}

	return c.respond(http.StatusOK, map[string]string{"Id": f.UUID.String(), "Key": b.ID + "/" + f.FullFileName})
}

// uploadedBody gives body read failures their kinds.
type uploadedBody struct{ io.Reader }

// Read implements io.Reader.
func (b uploadedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	switch {
	case err == nil || err == io.EOF:
		return n, err
	case errors.Is(err, httpx.ErrTooSlow):
		return n, fault.New(fault.TooSlow, "The body arrives too slowly").WithCause(err)
	}

	return n, fault.New(fault.Invalid, "The body is incomplete").WithCause(err)
}

// keyError gives the contract's error code to the failure for an invalid object name.
func keyError(err error, name string) error {
	e := fault.Of(err)
	if e != nil && e.Kind == fault.Unprocessable && len(e.Fields) > 0 && e.Fields[0].Name == "full_file_name" {
		return fault.New(fault.Invalid, "Invalid key: %s", strings.ToValidUTF8(name, "")).WithCode("InvalidKey").
			WithCause(err)
	}

	return err
}

// readForm reads a form's fields up to the file, which is the part without a field name or with a
// file name. It returns the field metadata.
func readForm(form *multipart.Reader, n *object.NewFile) (metadata []byte, err error) {
	n.Length = 0 // the form's length
	kind := ""
	for range 8 {
		part, err := form.NextPart()
		if err != nil {
			return nil, fault.New(fault.Invalid, "The form has no file").WithCause(err)
		}

		if part.FormName() == "" || part.FileName() != "" {
			n.Content, n.MimeType = part, cmp.Or(kind, part.Header.Get("Content-Type"))
			return metadata, nil
		}

		value := make([]byte, maxMetadata)
		size := 0
		for err == nil && size < len(value) {
			var read int
			read, err = part.Read(value[size:])
			size += read
		}

		switch value = value[:size]; part.FormName() {
		case "contentType":
			kind = string(value)
		case "cacheControl":
			n.CacheControl = "max-age=" + string(value)
		case "metadata":
			metadata = value
		}
	}

	return nil, fault.New(fault.Invalid, "The form has too many fields")
}

// checkMetadata checks that an application's metadata are a JSON object or empty.
func checkMetadata(text []byte) ([]byte, error) {
	if len(text) == 0 {
		return nil, nil
	}

	var members map[string]any
	if len(text) >= maxMetadata || json.Unmarshal(text, &members) != nil || !pg.StorableJSON(text) {
		return nil, fault.New(fault.Invalid, "metadata must be a JSON object")
	}

	return text, nil
}

// download sends an object. No policy decides about objects in a public bucket.
func (c *call) download(path string) error {
	b, name, err := c.readable(path)
	if err != nil {
		return err
	}

	return c.send(b, name, false)
}

// readable returns the bucket and object name to read from.
func (c *call) readable(path string) (object.Container, string, error) {
	b, name, err := c.bucketOf(path)
	if err == nil && b.IsPublic {
		c.actor.Role = actor.ServiceRole
	}

	return b, name, err
}

func (c *call) downloadPublic(path string) error {
	b, name, err := c.readable(path)
	if err != nil {
		return err
	}
	if !b.IsPublic {
		return errNoBucket
	}

	return c.send(b, name, true)
}

// send sends an object. Caches shared by several clients keep it only if the address is public.
func (c *call) send(b object.Container, name string, public bool) error {
	o, content, err := object.OpenFile(c.r.Context(), c.Database, c.Blobs, c.actor, fileOf(b, name))
	if err != nil {
		return err
	}

	d := httpx.Download{Content: content, MimeType: o.MimeType, Size: o.Size, SHA256: o.SHA256, ETag: etagOf(o.SHA256),
		Modified: o.UpdatedAt, CacheControl: o.CacheControl(), Encoding: o.Headers["Content-Encoding"],
		Language: o.Headers["Content-Language"], Refuse: c.refuseRange}
	if !public && !strings.Contains(d.CacheControl, "private") {
		d.CacheControl = "private, " + d.CacheControl
	}
	if query := c.r.URL.Query(); query.Has("download") {
		d.Attachment, d.Name = true, query.Get("download")
	}

	d.ServeHTTP(c.w, c.r)

	return nil
}

// refuseRange writes the failure for a range or a condition, with the status given.
func (c *call) refuseRange(w http.ResponseWriter, status int) {
	f := failure{"416", "InvalidRange", "The requested range is not satisfiable", "InvalidRange"}
	if status == http.StatusPreconditionFailed {
		f = failure{"412", "PreconditionFailed", "The object does not match the conditions", "PreconditionFailed"}
	}

	_ = c.respond(status, f) // strings have no error
}

// info sends an object's description.
func (c *call) info(path string) error {
	b, name, err := c.readable(path)
	if err != nil {
		return err
	}

	return c.describe(b, name)
}

func (c *call) infoPublic(path string) error {
	b, name, err := c.readable(path)
	if err != nil {
		return err
	}
	if !b.IsPublic {
		return errNoBucket
	}

	return c.describe(b, name)
}

func (c *call) describe(b object.Container, name string) error {
	o, err := object.GetFile(c.r.Context(), c.Database, c.actor, fileOf(b, name))
	if err != nil {
		return err
	}

	metadata := json.RawMessage("{}")
	if o.UserMetadata != nil {
		metadata = o.UserMetadata
	}

	c.w.Header().Set("ETag", etagOf(o.SHA256))
	return c.respond(http.StatusOK, map[string]any{"id": o.UUID, "version": o.Version, "name": o.FullFileName,
		"bucket_id": b.ID, "size": o.Size, "content_type": o.MimeType, "cache_control": o.CacheControl(),
		"etag": etagOf(o.SHA256), "last_modified": timestamp(o.UpdatedAt), "created_at": timestamp(o.CreatedAt),
		"metadata": metadata})
}

// remove deletes the named objects from a bucket, or the object in the path.
func (c *call) remove(path string) error {
	b, name, err := c.bucketOf(path)
	if err != nil {
		return err
	}

	in := struct{ Prefixes []string }{[]string{name}}
	if name == "" {
		in.Prefixes = nil
		if err := c.decode(&in); err != nil {
			return err
		}
	}
	if len(in.Prefixes) == 0 || len(in.Prefixes) > maxNames {
		return fault.New(fault.Invalid, "body/prefixes must have 1 to %d items", maxNames)
	}

	files, err := object.DeleteFilesByName(c.r.Context(), c.Database, c.actor, b.UUID, in.Prefixes)
	if err != nil {
		return err
	}
	if len(files) > 0 {
		c.Discard(c.r.Context(), c.Database.UUID)
	}
	if name != "" {
		if len(files) == 0 {
			return fault.New(fault.NotFound, "Object not found")
		}
		return c.respond(http.StatusOK, map[string]string{"message": "Successfully deleted"})
	}

	rows := make([]map[string]any, 0, len(files))
	for _, f := range files {
		rows = append(rows, map[string]any{"id": f.UUID, "bucket_id": b.ID, "name": f.FullFileName,
			"created_at": timestamp(f.CreatedAt), "updated_at": timestamp(f.UpdatedAt),
			"last_accessed_at": timestamp(f.UpdatedAt),
			"metadata":         metadataOf(f.Size, f.MimeType, f.SHA256, nil, f.UpdatedAt)})
	}

	return c.respond(http.StatusOK, rows)
}

// move renames an object, or moves it to another bucket.
func (c *call) move(string) error {
	var in struct{ BucketID, SourceKey, DestinationBucket, DestinationKey string }
	if err := c.decode(&in); err != nil {
		return err
	}

	from, to, err := c.bucketsOf(in.BucketID, in.DestinationBucket)
	if err != nil {
		return err
	}

	_, err = object.UpdateFile(c.r.Context(), c.Database, c.actor, fileOf(from, in.SourceKey),
		object.FileUpdate{FullFileName: &in.DestinationKey, Container: new(to.Ref())})
	if err != nil {
		return keyError(err, in.DestinationKey)
	}

	return c.respond(http.StatusOK, map[string]string{"message": "Successfully moved"})
}

// copy copies an object, within a bucket or to another one.
func (c *call) copy(string) error {
	in := struct {
		BucketID, SourceKey, DestinationBucket, DestinationKey string
		CopyMetadata                                           *bool
		Metadata                                               struct{ CacheControl, Mimetype string }
	}{}
	if err := c.decode(&in); err != nil {
		return err
	}

	from, to, err := c.bucketsOf(in.BucketID, in.DestinationBucket)
	if err != nil {
		return err
	}

	n := object.NewFile{Upsert: c.r.Header.Get("X-Upsert") == "true", CacheControl: in.Metadata.CacheControl}
	n.FullFileName, n.MimeType = in.DestinationKey, in.Metadata.Mimetype
	if err := checkCacheControl(n.CacheControl); err != nil {
		return err
	}

	metadata, err := base64.StdEncoding.DecodeString(c.r.Header.Get("X-Metadata"))
	if err != nil {
		return fault.New(fault.Invalid, "x-metadata must be JSON in base64")
	}
	if n.Metadata, err = checkMetadata(metadata); err != nil {
		return err
	}
	if n.Metadata == nil && in.CopyMetadata != nil && !*in.CopyMetadata {
		n.Metadata = []byte("{}")
	}

	f, discard, err := object.CopyFile(c.r.Context(), c.Database, c.Blobs, c.actor, fileOf(from, in.SourceKey),
		to.Ref(), n)
	if discard {
		c.Discard(c.r.Context(), c.Database.UUID)
	}
	if err != nil {
		return keyError(err, in.DestinationKey)
	}

	return c.respond(http.StatusOK, map[string]any{"Id": f.UUID, "Key": to.ID + "/" + f.FullFileName, "id": f.UUID,
		"name": f.FullFileName, "bucket_id": to.ID, "created_at": timestamp(f.CreatedAt),
		"updated_at": timestamp(f.UpdatedAt), "last_accessed_at": timestamp(f.UpdatedAt),
		"metadata": metadataOf(f.Size, f.MimeType, f.SHA256, optional(n.CacheControl), f.UpdatedAt)})
}

// bucketsOf returns the source and the destination bucket, which are the same if destination is
// empty.
func (c *call) bucketsOf(source, destination string) (from, to object.Container, err error) {
	if from, _, err = c.bucketOf(source); err != nil || destination == "" {
		return from, from, err
	}

	to, _, err = c.bucketOf(destination)
	return from, to, err
}

// optional returns nil for "".
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// timestamp is a time in responses, in milliseconds.
type timestamp time.Time

// MarshalJSON implements json.Marshaler.
func (t timestamp) MarshalJSON() ([]byte, error) {
	const layout = `"2006-01-02T15:04:05.000Z"`
	return time.Time(t).UTC().AppendFormat(make([]byte, 0, len(layout)), layout), nil
}

// etagOf returns an object's entity tag, as in the column metadata of storage.objects.
func etagOf(sha256 []byte) string { return `"` + hex.EncodeToString(sha256[:16]) + `"` }

// objectMetadata is an object's metadata in responses.
type objectMetadata struct {
	ETag           string    `json:"eTag"`
	Size           int64     `json:"size"`
	MimeType       string    `json:"mimetype"`
	CacheControl   string    `json:"cacheControl"`
	LastModified   timestamp `json:"lastModified"`
	ContentLength  int64     `json:"contentLength"`
	HTTPStatusCode int       `json:"httpStatusCode"`
}

func metadataOf(size int64, mimeType string, sha256 []byte, cache *string, updatedAt time.Time) *objectMetadata {
	control := "no-cache"
	if cache != nil {
		control = *cache
	}

	return &objectMetadata{ETag: etagOf(sha256), Size: size, MimeType: mimeType, CacheControl: control,
		LastModified: timestamp(updatedAt), ContentLength: size, HTTPStatusCode: http.StatusOK}
}
