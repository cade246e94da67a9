package storageapi

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/object"
)

const (
	maxMetadata  = 64 << 10 // bytes of an object's metadata
	maxNames     = 1000     // objects of one removal
	defaultLimit = 100      // entries of a list
)

// bucketOf returns the bucket and the name of the object in the rest of a path.
func (c *call) bucketOf(path string) (object.Bucket, string, error) {
	id, name, _ := strings.Cut(path, "/")
	b, err := object.FindBucket(c.r.Context(), c.Database, id)
	if fault.Is(err, fault.NotFound) {
		return b, name, errNoBucket
	}

	return b, name, err
}

func (c *call) upload(path string) error {
	return c.store(path, c.r.Header.Get("X-Upsert") == "true")
}

func (c *call) replace(path string) error { return c.store(path, true) }

// store stores an object, whose bytes are the body or a part of it.
func (c *call) store(path string, upsert bool) error {
	b, name, err := c.bucketOf(path)
	if err != nil {
		return err
	}

	n := object.NewObject{Upsert: upsert, CacheControl: c.r.Header.Get("Cache-Control")}
	n.FullFileName, n.MimeType = name, c.r.Header.Get("Content-Type")
	n.Length = max(c.r.ContentLength, 0)
	body := httpx.NewPacedReader(c.w, c.r)
	n.Content = body

	metadata, err := base64.StdEncoding.DecodeString(c.r.Header.Get("X-Metadata"))
	if err != nil {
		return fault.New(fault.Invalid, "x-metadata must be JSON in base64").WithCode("InvalidRequest")
	}

	if kind, params, err := mime.ParseMediaType(n.MimeType); err == nil && kind == "multipart/form-data" {
		if metadata, err = readForm(multipart.NewReader(body, params["boundary"]), &n); err != nil {
			return err
		}
	}

	if n.Metadata, err = checkMetadata(metadata); err != nil {
		return err
	}

	f, replaced, err := object.PutObject(c.r.Context(), c.Database, c.Blobs, c.actor, b, n)
	if replaced {
		c.Discard(c.r.Context(), c.Database.UUID)
	}
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, map[string]string{"Id": f.UUID.String(), "Key": b.ID + "/" + f.FullFileName})
}

// readForm reads the fields of a form up to the file, which is the part without a name. It returns
// the field metadata.
func readForm(form *multipart.Reader, n *object.NewObject) (metadata []byte, err error) {
	n.Length = 0 // that of the form
	for range 8 {
		part, err := form.NextPart()
		if err != nil {
			return nil, fault.New(fault.Invalid, "The form has no file").WithCode("InvalidRequest").WithCause(err)
		}

		if part.FormName() == "" || part.FileName() != "" {
			n.Content, n.MimeType = part, part.Header.Get("Content-Type")
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
		case "cacheControl":
			n.CacheControl = "max-age=" + string(value)
		case "metadata":
			metadata = value
		}
	}

	return nil, fault.New(fault.Invalid, "The form has too many fields").WithCode("InvalidRequest")
}

// checkMetadata checks that the metadata of an application are a JSON object, or empty.
func checkMetadata(text []byte) ([]byte, error) {
	if len(text) == 0 {
		return nil, nil
	}

	var members map[string]any
	if len(text) >= maxMetadata || json.Unmarshal(text, &members) != nil {
		return nil, fault.New(fault.Invalid, "metadata must be a JSON object").WithCode("InvalidRequest")
	}

	return text, nil
}

func (c *call) download(path string) error {
	b, name, err := c.bucketOf(path)
	if err != nil {
		return err
	}

	return c.send(b, name)
}

// downloadPublic sends an object of a public bucket, about which no policy decides.
func (c *call) downloadPublic(path string) error {
	b, name, err := c.bucketOf(path)
	if err != nil {
		return err
	}
	if !b.IsPublic {
		return errNoBucket
	}

	c.actor.Role = "service_role"
	return c.send(b, name)
}

// send sends an object. Its headers keep browsers from treating it as a page of this origin.
func (c *call) send(b object.Bucket, name string) error {
	f, content, err := object.OpenObject(c.r.Context(), c.Database, c.Blobs, c.actor, b, name)
	if err != nil {
		return err
	}
	defer content.Close()

	h := c.w.Header()
	h.Set("Content-Type", f.MimeType)
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", f.ETag())
	http.ServeContent(httpx.NewPacedWriter(c.w), c.r, "", f.UpdatedAt, content)

	if err := content.Err(); err != nil {
		httpx.From(c.r.Context()).Err = err
		panic(http.ErrAbortHandler) // Content withheld the last bytes, so no client takes the file for complete
	}

	return nil
}

// remove deletes the named objects of a bucket, or the one in the path.
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
	if len(in.Prefixes) > maxNames {
		return fault.New(fault.Invalid, "prefixes must be at most %d names", maxNames).WithCode("InvalidRequest")
	}

	gone, err := object.RemoveObjects(c.r.Context(), c.Database, c.actor, b, in.Prefixes)
	if err != nil {
		return err
	}
	if len(gone) > 0 {
		c.Discard(c.r.Context(), c.Database.UUID)
	}
	if name != "" {
		if len(gone) == 0 {
			return fault.New(fault.NotFound, "Object not found")
		}
		return c.respond(http.StatusOK, map[string]string{"message": "Successfully deleted"})
	}

	removed := make([]map[string]any, 0, len(gone))
	for _, f := range gone {
		removed = append(removed, map[string]any{"id": f.UUID, "bucket_id": b.ID, "name": f.FullFileName,
			"created_at": f.CreatedAt, "updated_at": f.UpdatedAt,
			"metadata": metadataOf(f.Size, f.MimeType, f.SHA256, nil, f.UpdatedAt)})
	}

	return c.respond(http.StatusOK, removed)
}

// move renames an object, or moves it to another bucket.
func (c *call) move(string) error {
	var in struct{ BucketID, SourceKey, DestinationBucket, DestinationKey string }
	if err := c.decode(&in); err != nil {
		return err
	}

	from, _, err := c.bucketOf(in.BucketID)
	if err != nil {
		return err
	}

	to := from
	if in.DestinationBucket != "" {
		if to, _, err = c.bucketOf(in.DestinationBucket); err != nil {
			return err
		}
	}

	_, err = object.MoveObject(c.r.Context(), c.Database, c.actor, from, to, in.SourceKey, in.DestinationKey)
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, map[string]string{"message": "Successfully moved"})
}

// entry is an entry of a list. A folder has a name only.
type entry struct {
	Name           string         `json:"name"`
	ID             *uuid.UUID     `json:"id"`
	UpdatedAt      *time.Time     `json:"updated_at"`
	CreatedAt      *time.Time     `json:"created_at"`
	LastAccessedAt *time.Time     `json:"last_accessed_at"`
	Metadata       map[string]any `json:"metadata"`
}

// list lists a folder of a bucket, by name.
func (c *call) list(path string) error {
	in := struct {
		Prefix        string
		Limit, Offset int
	}{Limit: defaultLimit}
	if err := c.decode(&in); err != nil {
		return err
	}

	b, _, err := c.bucketOf(path)
	if err != nil {
		return err
	}

	if in.Prefix = strings.TrimSuffix(in.Prefix, "/"); in.Prefix != "" {
		in.Prefix += "/"
	}

	found, err := object.ListObjects(c.r.Context(), c.Database, c.actor, b, in.Prefix,
		min(max(in.Offset, 0), object.MaxObjectOffset), min(max(in.Limit, 1), object.MaxObjectList))
	if err != nil {
		return err
	}

	entries := make([]entry, 0, len(found))
	for _, f := range found {
		e := entry{Name: f.Name, ID: f.UUID, UpdatedAt: f.UpdatedAt, CreatedAt: f.CreatedAt,
			LastAccessedAt: f.UpdatedAt}
		if f.UUID != nil {
			e.Metadata = metadataOf(*f.Size, *f.MimeType, f.SHA256, f.Cache, *f.UpdatedAt)
		}
		entries = append(entries, e)
	}

	return c.respond(http.StatusOK, entries)
}

// metadataOf returns the metadata of an object as clients know them.
func metadataOf(size int64, mimeType string, sha256 []byte, cache *string, modified time.Time) map[string]any {
	control := "no-cache"
	if cache != nil {
		control = *cache
	}

	return map[string]any{"eTag": fmt.Sprintf(`"%x"`, sha256[:16]), "size": size, "mimetype": mimeType,
		"cacheControl": control, "lastModified": modified, "contentLength": size, "httpStatusCode": http.StatusOK}
}
