package s3api

import (
	"encoding/base64"
	"encoding/xml"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/object"
)

type owner struct {
	ID          string
	DisplayName string
}

// maxBuckets is the maximum number of buckets of a list, as in S3.
const maxBuckets = 10_000

func (c *call) listBuckets() error {
	type bucket struct {
		Name         string
		CreationDate string
	}
	result := struct {
		XMLName           xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListAllMyBucketsResult"`
		Owner             owner
		Buckets           []bucket `xml:"Buckets>Bucket"`
		ContinuationToken string   `xml:",omitempty"`
		Prefix            string
	}{Owner: c.owner(), Prefix: c.query.Get("prefix")}

	limit, err := c.intParam("max-buckets", maxBuckets, maxBuckets)
	if err != nil {
		return err
	}
	after, err := decodeToken(c.query.Get("continuation-token"))
	if err != nil {
		return err
	}

	found, err := object.BucketsAfter(c.r.Context(), c.Database, result.Prefix, after, limit+1)
	if err != nil {
		return err
	}

	for i, b := range found {
		if i == limit {
			result.ContinuationToken = encodeToken(found[i-1].ID)
			break
		}
		result.Buckets = append(result.Buckets, bucket{b.ID, timestamp(b.CreatedAt)})
	}

	return c.respond(result)
}

func (c *call) owner() owner {
	id := c.Database.UUID.String()
	return owner{id, id}
}

func (c *call) getLocation() error {
	return c.respond(struct {
		XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ LocationConstraint"`
	}{})
}

func (c *call) getVersioning() error {
	return c.respond(struct {
		XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ VersioningConfiguration"`
	}{})
}

func (c *call) headBucket() error { return c.empty(http.StatusOK) }

// createBucket creates a container. The location in the body has no meaning here.
func (c *call) createBucket() error {
	_, err := object.FindBucket(c.r.Context(), c.Database, c.name)
	if err == nil {
		return errOwned
	}
	if fault.Is(err, fault.NotFound) {
		_, err = object.CreateContainer(c.r.Context(), c.Database, uuid.Nil, object.NewContainer{Name: c.name})
	}

	switch {
	case fault.Is(err, fault.Unprocessable):
		return malformed("InvalidBucketName", "The bucket's name must be 3 to 63 letters, digits, _ or -")
	case fault.Is(err, fault.Conflict):
		return errOwned
	case err != nil:
		return err
	}

	c.w.Header().Set("Location", "/"+c.name)
	return c.empty(http.StatusOK)
}

func (c *call) deleteBucket() error {
	_, err := object.DeleteContainer(c.r.Context(), c.Database, c.bucket.UUID, false)
	switch {
	case fault.Is(err, fault.Conflict):
		return fault.New(fault.Conflict, "The bucket you tried to delete is not empty").WithCode("BucketNotEmpty")
	case fault.Is(err, fault.NotFound):
		return errNoBucket
	case err != nil:
		return err
	}

	c.Discard(c.r.Context(), c.Database.UUID)
	return c.empty(http.StatusNoContent)
}

type listedObject struct {
	Key          string
	LastModified string
	ETag         string
	Size         int64
	StorageClass string
	Owner        *owner
}

type commonPrefix struct{ Prefix string }

// listResult is the result of both versions of the list.
type listResult struct {
	XMLName        xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
	Name           string
	Prefix         string
	Delimiter      string `xml:",omitempty"`
	MaxKeys        int
	EncodingType   string `xml:",omitempty"`
	IsTruncated    bool
	KeyCount       *int
	Marker         *string
	NextMarker     string `xml:",omitempty"`
	StartAfter     string `xml:",omitempty"`
	Token          string `xml:"ContinuationToken,omitempty"`
	NextToken      string `xml:"NextContinuationToken,omitempty"`
	Contents       []listedObject
	CommonPrefixes []commonPrefix
}

// listObjects lists objects by version 1 or 2.
func (c *call) listObjects() error {
	q := c.query
	second := q.Get("list-type") == "2"

	limit, err := c.intParam("max-keys", maxList, maxList)
	if err != nil {
		return err
	}

	result := listResult{Name: c.name, MaxKeys: limit, EncodingType: q.Get("encoding-type")}
	encode := func(s string) string { return s }
	if result.EncodingType == "url" {
		encode = func(s string) string { return escape(s, true) }
	}

	keys := object.ObjectListing{Prefix: q.Get("prefix"), Delimiter: q.Get("delimiter"), Limit: limit + 1}
	if !object.IsNamePrefix(keys.Prefix) || !object.IsNamePrefix(keys.Delimiter) || len(keys.Delimiter) > 1 {
		return malformed("InvalidArgument",
			"The prefix must be a beginning of a key, the delimiter one ASCII character")
	}
	result.Prefix, result.Delimiter = encode(keys.Prefix), encode(keys.Delimiter)

	after := q.Get("marker")
	if second {
		after, result.StartAfter, result.Token = q.Get("start-after"), encode(q.Get("start-after")),
			q.Get("continuation-token")
	} else {
		result.Marker = new(encode(after))
	}
	if !object.IsNamePrefix(after) {
		return malformed("InvalidArgument", "The marker must be a key")
	}
	if keys.From, err = decodeToken(result.Token); err != nil {
		return err
	}
	if after != "" && keys.From == "" {
		keys.After = after
	}
	if isFolder(after) {
		keys.Limit++ // for the marker of this folder, whose name is behind its key
	}

	var found []object.ObjectEntry
	if limit > 0 {
		if found, err = object.ListObjects(c.r.Context(), c.Database, server, c.bucket, keys); err != nil {
			return err
		}
	}

	found = slices.DeleteFunc(found, func(e object.ObjectEntry) bool {
		return e.UUID != nil && isFolder(after) && e.Name == fileName(after)
	})

	if len(found) > limit {
		last := found[limit-1]
		found, result.IsTruncated = found[:limit], true
		if second {
			result.NextToken = encodeToken(last.Following())
		} else {
			result.NextMarker = encode(last.Name)
		}
	}

	for _, e := range found {
		if e.UUID == nil {
			result.CommonPrefixes = append(result.CommonPrefixes, commonPrefix{encode(e.Name)})
			continue
		}

		listed := listedObject{Key: encode(keyOf(e.Name, keys.Prefix)), LastModified: timestamp(*e.UpdatedAt),
			ETag: tag(e.SHA256), Size: *e.Size, StorageClass: "STANDARD"}
		if !second || q.Get("fetch-owner") == "true" {
			listed.Owner = new(c.owner())
		}
		result.Contents = append(result.Contents, listed)
	}

	if second {
		result.KeyCount = new(len(found))
	}

	return c.respond(result)
}

// intParam returns a number of the query, at most limit.
func (c *call) intParam(name string, missing, limit int) (int, error) {
	text := c.query.Get(name)
	if text == "" {
		return missing, nil
	}

	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, malformed("InvalidArgument", "Provided "+name+" not an integer or within integer range")
	}

	return min(n, limit), nil
}

func encodeToken(next string) string { return base64.RawURLEncoding.EncodeToString([]byte(next)) }

func decodeToken(text string) (string, error) {
	next, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || !object.IsNamePrefix(string(next)) {
		return "", malformed("InvalidArgument", "The continuation token provided is incorrect")
	}

	return string(next), nil
}

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
