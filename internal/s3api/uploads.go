package s3api

import (
	"encoding/xml"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/object"
)

// upload returns the request's multipart upload.
func (c *call) upload() (object.Multipart, error) {
	id, err := uuid.Parse(c.query.Get("uploadId"))
	if err != nil {
		return object.Multipart{}, errNoUpload
	}
	return object.GetMultipart(c.r.Context(), c.Database, c.bucket.UUID, c.key, id)
}

func (c *call) createUpload() error {
	if isFolder(c.key) {
		return errFullFolder
	}

	n, err := c.headers()
	if err != nil {
		return err
	}

	u, err := object.CreateMultipart(c.r.Context(), c.Database, c.bucket.UUID, n)
	if err != nil {
		return c.storeFailure(err)
	}

	return c.respond(struct {
		XMLName  xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ InitiateMultipartUploadResult"`
		Bucket   string
		Key      string
		UploadID string `xml:"UploadId"`
	}{Bucket: c.name, Key: c.key, UploadID: u.UUID.String()})
}

// putPart stores a part in the request's upload.
func (c *call) putPart(content io.Reader, length int64) (object.MultipartPart, error) {
	number, err := strconv.Atoi(c.query.Get("partNumber"))
	if err != nil || number < 1 || number > object.MaxParts {
		return object.MultipartPart{}, malformed("InvalidArgument",
			"Part number must be an integer between 1 and 10000, inclusive")
	}

	u, err := c.upload()
	if err != nil {
		return object.MultipartPart{}, err
	}

	part, err := object.PutPart(c.r.Context(), c.Database, c.Blobs, c.bucket.UUID, u, number, content, length)
	return part, c.storeFailure(err)
}

func (c *call) uploadPart() error {
	if !c.query.Has("uploadId") {
		return errNoUpload
	}

	part, err := c.putPart(c.body, max(c.body.length, 0))
	if err != nil {
		return c.bodyFailure(err)
	}

	c.body.writeSums(c.w.Header())
	c.w.Header().Set("ETag", `"`+part.Tag()+`"`)
	return c.empty(http.StatusOK)
}

// copyPart stores a range of an object as a part.
func (c *call) copyPart() error {
	f, content, err := c.source()
	if err != nil {
		return err
	}
	defer content.Close()

	first, length, err := c.sourceRange(f.Size)
	if err != nil {
		return err
	}
	if _, err := content.Seek(first, io.SeekStart); err != nil {
		return err
	}

	part, err := c.putPart(io.LimitReader(content, length), length)
	if err != nil {
		return err
	}

	return c.respond(copyResult{xml.Name{Space: namespace, Local: "CopyPartResult"}, timestamp(part.CreatedAt),
		`"` + part.Tag() + `"`})
}

// completeUpload creates the object from the named parts.
func (c *call) completeUpload() error {
	var in struct {
		XMLName xml.Name `xml:"CompleteMultipartUpload"`
		Part    []struct {
			PartNumber int
			ETag       string
		}
	}
	if err := c.decode(&in); err != nil {
		return err
	}
	if len(in.Part) > object.MaxParts {
		return errMalformedXML
	}

	u, err := c.upload()
	if err != nil {
		return err
	}

	parts := make([]object.CompletedPart, len(in.Part))
	for i, p := range in.Part {
		parts[i] = object.CompletedPart{Number: p.PartNumber, Tag: strings.Trim(p.ETag, `"`)}
	}

	completion := object.Completion{Parts: parts, Size: -1, Upsert: c.r.Header.Get("If-None-Match") == ""}
	if text := c.r.Header.Get("X-Amz-Mp-Object-Size"); text != "" {
		completion.Size, _ = strconv.ParseInt(text, 10, 64) // checked
	}
	if completion.Verify, err = c.verifyObject(); err != nil {
		return err
	}

	f, discard, err := object.CompleteMultipart(c.r.Context(), c.Database, c.Blobs, server, c.bucket.Ref(), u,
		completion)
	if discard {
		c.Discard(c.r.Context(), c.Database.UUID)
	}
	if fault.Is(err, fault.NotFound) && u.FileUUID.Valid {
		return errNoUpload // the object is gone again
	}
	if err != nil {
		return c.storeFailure(err)
	}

	return c.respond(struct {
		XMLName  xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CompleteMultipartUploadResult"`
		Location string
		Bucket   string
		Key      string
		ETag     string
	}{Location: c.location(c.key), Bucket: c.name, Key: c.key, ETag: tag(f.SHA256)})
}

// verifyObject returns a function that wraps an object's content to fail after the last byte unless
// it matches the request's checksums.
func (c *call) verifyObject() (func(io.Reader) io.Reader, error) {
	for header := range sums {
		if strings.Contains(c.r.Header.Get(header), "-") { // not base64: a checksum of checksums
			return nil, unknownHeader(header)
		}
	}

	b := &body{length: -1}
	if err := b.expect(c.r.Header); err != nil {
		return nil, err
	}

	return func(content io.Reader) io.Reader {
		b.in = content
		return b
	}, nil
}

// location returns an object's URL in the request's bucket.
func (c *call) location(key string) string {
	root := c.URL(Prefix)
	if root == "" { // the URL that the client has used
		scheme := "http"
		if c.r.TLS != nil {
			scheme = "https"
		}
		root = scheme + "://" + c.r.Host + c.rootPath
	}

	return root + escape("/"+c.name+"/"+key, true)
}

func (c *call) abortUpload() error {
	u, err := c.upload()
	if err != nil {
		return err
	}
	if err := object.AbortMultipart(c.r.Context(), c.Database, u); err != nil {
		return err
	}

	c.Discard(c.r.Context(), c.Database.UUID)
	return c.empty(http.StatusNoContent)
}

func (c *call) listParts() error {
	u, err := c.upload()
	if err != nil {
		return err
	}
	if u.FileUUID.Valid {
		return errNoUpload
	}

	after, err := c.intParam("part-number-marker", 0, object.MaxParts)
	if err != nil {
		return err
	}
	limit, err := c.intParam("max-parts", maxList, maxList)
	if err != nil {
		return err
	}

	type part struct {
		PartNumber   int
		LastModified string
		ETag         string
		Size         int64
	}
	result := struct {
		XMLName              xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListPartsResult"`
		Bucket               string
		Key                  string
		UploadID             string `xml:"UploadId"`
		Initiator, Owner     owner
		StorageClass         string
		PartNumberMarker     int
		NextPartNumberMarker int `xml:",omitempty"`
		MaxParts             int
		IsTruncated          bool
		Part                 []part
	}{Bucket: c.name, Key: c.key, UploadID: u.UUID.String(), Initiator: c.owner(), Owner: c.owner(),
		StorageClass: "STANDARD", PartNumberMarker: after, MaxParts: limit}

	parts, err := object.ListParts(c.r.Context(), c.Database, u.UUID, after, limit+1)
	if err != nil {
		return err
	}
	if len(parts) > limit {
		parts, result.IsTruncated = parts[:limit], true
	}

	for _, p := range parts {
		result.Part = append(result.Part, part{p.Number, timestamp(p.CreatedAt), `"` + p.Tag() + `"`, p.Size})
		result.NextPartNumberMarker = p.Number
	}

	return c.respond(result)
}

// listUploads lists uploads in progress by key. The project has few enough to read them all.
func (c *call) listUploads() error {
	prefix, after, afterID := c.query.Get("prefix"), c.query.Get("key-marker"), c.query.Get("upload-id-marker")
	if !object.IsNamePrefix(prefix) {
		return malformed("InvalidArgument", "The prefix must be a beginning of a key")
	}
	encode, err := c.encoding()
	if err != nil {
		return err
	}

	limit, err := c.intParam("max-uploads", object.MaxMultipartUploads, object.MaxMultipartUploads)
	if err != nil {
		return err
	}

	uploads, err := object.ListMultiparts(c.r.Context(), c.Database, c.bucket.UUID, prefix)
	if err != nil {
		return err
	}
	uploads = uploads[uploadsBefore(uploads, after, afterID):]

	type upload struct {
		Key              string
		UploadID         string `xml:"UploadId"`
		Initiator, Owner owner
		StorageClass     string
		Initiated        string
	}
	result := struct {
		XMLName            xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListMultipartUploadsResult"`
		Bucket             string
		Prefix             string
		KeyMarker          string
		UploadIDMarker     string `xml:"UploadIdMarker"`
		NextKeyMarker      string `xml:",omitempty"`
		NextUploadIDMarker string `xml:"NextUploadIdMarker,omitempty"`
		MaxUploads         int
		EncodingType       string `xml:",omitempty"`
		IsTruncated        bool
		Upload             []upload
	}{Bucket: c.name, Prefix: encode(prefix), KeyMarker: encode(after), UploadIDMarker: afterID, MaxUploads: limit,
		EncodingType: c.query.Get("encoding-type")}
	if len(uploads) > limit {
		uploads, result.IsTruncated = uploads[:limit], true
	}
	if result.IsTruncated && limit > 0 {
		last := uploads[limit-1]
		result.NextKeyMarker, result.NextUploadIDMarker = encode(last.FullFileName), last.UUID.String()
	}

	for _, u := range uploads {
		result.Upload = append(result.Upload, upload{encode(u.FullFileName), u.UUID.String(), c.owner(), c.owner(),
			"STANDARD", timestamp(u.CreatedAt)})
	}

	return c.respond(result)
}

// uploadsBefore returns the number of uploads, sorted by key, before the page that begins after the
// markers. Without an upload marker, the page begins after all the key's uploads.
func uploadsBefore(uploads []object.Multipart, key, id string) int {
	count := 0
	for i, u := range uploads {
		switch {
		case key == "" || u.FullFileName > key:
			return count
		case u.FullFileName < key || id == "" || u.UUID.String() == id:
			count = i + 1
		}
	}

	return count
}
