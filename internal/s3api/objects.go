package s3api

import (
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/pg"
)

const (
	metadataPrefix = "X-Amz-Meta-"
	maxMetadata    = 2 << 10 // bytes in an object's metadata, as in S3
	maxHeaders     = 8 << 10 // bytes in the headers that an object keeps, as in S3
)

// tag returns an entity tag for a checksum. The suffix tells clients that it is no MD5.
func tag(sha256 []byte) string { return `"` + hex.EncodeToString(sha256[:16]) + `-1"` }

// headers returns the object's name, type and metadata from the request headers.
func (c *call) headers() (object.NewFile, error) {
	h := c.r.Header
	n := object.NewFile{CacheControl: textOf(h, "Cache-Control")}
	n.FullFileName, n.MimeType = fileName(c.key), h.Get("Content-Type")

	var err error
	if n.Headers, err = storedHeaders(h); err != nil {
		return n, err
	}

	metadata, size := map[string]string{}, 0
	for name, values := range h {
		if key, ok := strings.CutPrefix(name, metadataPrefix); ok {
			metadata[strings.ToLower(key)] = strings.Join(values, ",")
			size += len(key) + len(metadata[strings.ToLower(key)])
		}
	}
	if size > maxMetadata {
		return n, malformed("MetadataTooLarge", "Your metadata headers exceed the maximum allowed metadata size")
	}
	if len(metadata) == 0 {
		return n, nil
	}

	n.Metadata, err = json.Marshal(metadata)
	return n, err
}

// storedHeaders returns the request headers that the object keeps. aws-chunked encodes the
// request's body, not the object.
func storedHeaders(h http.Header) (object.Headers, error) {
	var headers object.Headers
	size := len(h.Get("Cache-Control"))
	for _, name := range object.HeaderNames {
		value := textOf(h, name)
		if name == "Content-Encoding" {
			codings := slices.DeleteFunc(strings.Split(value, ","), func(coding string) bool {
				coding = strings.TrimSpace(coding)
				return coding == "" || strings.EqualFold(coding, "aws-chunked")
			})
			value = strings.TrimSpace(strings.Join(codings, ","))
		}
		if value != "" {
			if headers == nil {
				headers = object.Headers{}
			}
			headers[name] = value
			size += len(value)
		}
	}
	if size > maxHeaders {
		return nil, malformed("MetadataTooLarge", "Your metadata headers exceed the maximum allowed metadata size")
	}

	return headers, nil
}

// textOf returns a header as text that PostgreSQL can store.
func textOf(h http.Header, name string) string {
	return strings.ToValidUTF8(strings.Join(h.Values(name), ","), "?")
}

// store stores the request's object, or fails with an S3 code.
func (c *call) store(n object.NewFile) (object.File, error) {
	if isFolder(c.key) && (n.Length > 0 || c.body.length < 0) {
		return object.File{}, errFullFolder
	}
	n.Upsert = c.r.Header.Get("If-None-Match") == ""

	f, discard, err := object.CreateFile(c.r.Context(), c.Database, c.Blobs, server, c.bucket.Ref(), n)
	if discard {
		c.Discard(c.r.Context(), c.Database.UUID)
	}

	return f, c.storeFailure(err)
}

// storeFailure translates a failure to store an object.
func (c *call) storeFailure(err error) error {
	switch {
	case fault.Is(err, fault.NotFound) && fault.Of(err).Code == "":
		return errNoBucket
	case fault.Is(err, fault.Conflict) && fault.Of(err).CodeWord() == "already_exists":
		return errPrecondition
	}
	return err
}

func (c *call) putObject() error {
	n, err := c.headers()
	if err != nil {
		return err
	}

	n.Content, n.Length = c.body, max(c.body.length, 0)
	f, err := c.store(n)
	if err != nil {
		return c.bodyFailure(err)
	}

	c.body.writeSums(c.w.Header())
	c.w.Header().Set("ETag", tag(f.SHA256))
	return c.empty(http.StatusOK)
}

// bodyFailure prefers the body's failure to the storage failure that it led to.
func (c *call) bodyFailure(err error) error {
	if c.body.err != nil && c.body.err != io.EOF {
		return readFailure(c.body.err)
	}
	return err
}

func (c *call) getObject() error {
	return c.send(c.bucket, c.key)
}

// send sends an object, or the requested range. The content security policy keeps browsers from
// treating it as a page of this origin.
func (c *call) send(b object.Container, key string) error {
	if part := c.query.Get("partNumber"); part != "" && part != "1" {
		return malformed("InvalidPartNumber", "The requested partnumber is not satisfiable")
	}

	f, content, err := object.OpenFile(c.r.Context(), c.Database, c.Blobs, server,
		object.FileRef{Container: b.UUID, Name: fileName(key)})
	if fault.Is(err, fault.NotFound) {
		return errNoKey
	}
	if err != nil {
		return err
	}
	defer content.Close()

	h := c.w.Header()
	h.Set("Content-Type", f.MimeType)
	h.Set("Content-Security-Policy", httpx.Sandbox)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("ETag", tag(f.SHA256))
	h.Set("Last-Modified", f.UpdatedAt.UTC().Format(http.TimeFormat)) // young objects have it too: clients rely on it
	if f.Cache != nil {
		h.Set("Cache-Control", *f.Cache)
	}
	for name, value := range f.Headers {
		h.Set(name, value)
	}
	for name, value := range metadataOf(f) {
		h[strings.ToLower(metadataPrefix+name)] = []string{value} // clients take the names as they are sent
	}
	for param, header := range map[string]string{"response-content-type": "Content-Type",
		"response-content-disposition": "Content-Disposition", "response-cache-control": "Cache-Control",
		"response-content-language": "Content-Language", "response-content-encoding": "Content-Encoding",
		"response-expires": "Expires"} {
		if value := c.query.Get(param); value != "" {
			h.Set(header, value)
		}
	}

	httpx.ServeContent(c.w, c.r, content, f.Size, f.UpdatedAt, c.refuse)

	return nil
}

// metadataOf returns an object's metadata that are texts and valid headers.
func metadataOf(f object.StoredFile) map[string]string {
	var all map[string]any
	_ = json.Unmarshal(f.UserMetadata, &all) // without metadata: none

	texts := map[string]string{}
	for name, value := range all {
		if text, ok := value.(string); ok && isToken(name) && !strings.ContainsAny(text, "\r\n\x00") {
			texts[name] = text
		}
	}

	return texts
}

// isToken reports whether text can be part of a header name.
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
}

// refuse writes the failure for a range or a condition.
func (c *call) refuse(_ http.ResponseWriter, status int) {
	if status == http.StatusPreconditionFailed {
		c.fail(errPrecondition)
		return
	}

	c.fail(malformed("InvalidRange", "The requested range is not satisfiable"))
}

func (c *call) deleteObject() error {
	files, err := object.DeleteFilesByName(c.r.Context(), c.Database, server, c.bucket.UUID, []string{fileName(c.key)})
	if err != nil {
		return err
	}
	if len(files) > 0 {
		c.Discard(c.r.Context(), c.Database.UUID)
	}

	return c.empty(http.StatusNoContent)
}

// deleteObjects deletes the named objects. One that does not exist counts as deleted.
func (c *call) deleteObjects() error {
	type name struct{ Key string }
	type named struct {
		name
		VersionID                    string `xml:"VersionId"`
		ETag, LastModifiedTime, Size string // conditions
	}
	type failed struct {
		name
		VersionID     string `xml:"VersionId"`
		Code, Message string
	}
	var in struct {
		XMLName xml.Name `xml:"Delete"`
		Quiet   bool
		Object  []named
	}
	if err := c.decode(&in); err != nil {
		return err
	}
	if len(in.Object) == 0 || len(in.Object) > maxDelete {
		return errMalformedXML
	}

	keys, names, others := make([]string, 0, len(in.Object)), make([]name, 0, len(in.Object)), []failed{}
	for _, o := range in.Object {
		if o.ETag != "" || o.LastModifiedTime != "" || o.Size != "" {
			return errNotImplemented
		}
		if o.VersionID != "" && o.VersionID != nullVersion {
			others = append(others, failed{o.name, o.VersionID, errNoVersion.Code, errNoVersion.Detail})
			continue
		}

		names = append(names, o.name)
		if !strings.ContainsRune(o.Key, 0) {
			keys = append(keys, fileName(o.Key))
		}
	}

	files, err := object.DeleteFilesByName(c.r.Context(), c.Database, server, c.bucket.UUID, keys)
	if err != nil {
		return err
	}
	if len(files) > 0 {
		c.Discard(c.r.Context(), c.Database.UUID)
	}

	result := struct {
		XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ DeleteResult"`
		Deleted []name
		Error   []failed
	}{Error: others}
	if !in.Quiet {
		result.Deleted = names
	}

	return c.respond(result)
}

// source opens the object that the request copies, if the request's conditions hold.
func (c *call) source() (object.StoredFile, *object.Content, error) {
	path, query, _ := strings.Cut(c.r.Header.Get("X-Amz-Copy-Source"), "?")
	sourcePath, err := url.PathUnescape(path)
	id, key, ok := strings.Cut(strings.TrimPrefix(sourcePath, "/"), "/")
	if err != nil || !ok || !pg.Storable(sourcePath) || (query != "" && query != "versionId=null") {
		return object.StoredFile{}, nil, malformed("InvalidArgument",
			"Copy Source must mention the source bucket and key: "+
				"sourcebucket/sourcekey")
	}

	b, err := object.GetContainer(c.r.Context(), c.Database, server, object.ContainerRef{ID: id})
	if fault.Is(err, fault.NotFound) {
		return object.StoredFile{}, nil, errNoBucket
	}
	if err != nil {
		return object.StoredFile{}, nil, err
	}

	f, content, err := object.OpenFile(c.r.Context(), c.Database, c.Blobs, server,
		object.FileRef{Container: b.UUID, Name: fileName(key)})
	if fault.Is(err, fault.NotFound) {
		return f, nil, errNoKey
	}
	if err == nil && !c.sourceMatches(f) {
		content.Close()
		err = errPrecondition
	}

	return f, content, err
}

// sourceMatches reports whether the conditions on a copy's source hold.
func (c *call) sourceMatches(f object.StoredFile) bool {
	h := c.r.Header
	plain := strings.Trim(tag(f.SHA256), `"`)
	same := func(header string) bool { return strings.Trim(h.Get(header), `"`) == plain }
	modTime := f.UpdatedAt.Truncate(time.Second)

	if h.Get("X-Amz-Copy-Source-If-Match") != "" {
		if !same("X-Amz-Copy-Source-If-Match") {
			return false
		}
	} else if at, err := http.ParseTime(h.Get("X-Amz-Copy-Source-If-Unmodified-Since")); err == nil &&
		modTime.After(at) {
		return false
	}

	if h.Get("X-Amz-Copy-Source-If-None-Match") != "" {
		return !same("X-Amz-Copy-Source-If-None-Match")
	}

	at, err := http.ParseTime(h.Get("X-Amz-Copy-Source-If-Modified-Since"))
	return err != nil || modTime.After(at)
}

type copyResult struct {
	XMLName      xml.Name
	LastModified string
	ETag         string
}

func (c *call) copyObject() error {
	f, content, err := c.source()
	if err != nil {
		return err
	}
	defer content.Close()

	n, err := c.headers()
	if err != nil {
		return err
	}
	if c.r.Header.Get("X-Amz-Metadata-Directive") != "REPLACE" {
		n.MimeType, n.Metadata, n.Headers = f.MimeType, f.UserMetadata, f.Headers
		if f.Cache != nil {
			n.CacheControl = *f.Cache
		}
	} else if n.MimeType == "" {
		n.MimeType = f.MimeType
	}

	n.Content, n.Length = content, f.Size
	file, err := c.store(n)
	if err != nil {
		return err
	}

	return c.respond(copyResult{xml.Name{Space: namespace, Local: "CopyObjectResult"}, timestamp(file.UpdatedAt),
		tag(file.SHA256)})
}

// sourceRange returns the source range that becomes a part.
func (c *call) sourceRange(size int64) (first, length int64, err error) {
	text := c.r.Header.Get("X-Amz-Copy-Source-Range")
	if text == "" {
		return 0, size, nil
	}

	from, to, _ := strings.Cut(strings.TrimPrefix(text, "bytes="), "-")
	first, err1 := strconv.ParseInt(from, 10, 64)
	last, err2 := strconv.ParseInt(to, 10, 64)
	if err1 != nil || err2 != nil || first < 0 || last < first || last >= size {
		return 0, 0, malformed("InvalidArgument",
			"The x-amz-copy-source-range value must be of the form bytes=first-last "+
				"where first and last are the zero-based offsets of the first and last bytes to copy")
	}

	return first, last - first + 1, nil
}
