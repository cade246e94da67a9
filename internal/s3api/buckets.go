package s3api

import (
	"encoding/base64"
	"encoding/xml"
	"net/http"
	"strconv"
	"time"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/object"
)

type owner struct {
	ID          string
	DisplayName string
}

// maxBuckets is the maximum number of buckets in a list, as in S3.
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

	containers, err := object.SearchContainers(c.r.Context(), c.Database, server,
		object.ContainerListing{Prefix: result.Prefix, After: after, Sort: "id", Limit: limit + 1})
	if err != nil {
		return err
	}

	for i, b := range containers {
		if i == limit {
			result.ContinuationToken = encodeToken(containers[i-1].ID)
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

func (c *call) headBucket() error { return c.empty(http.StatusOK) }

// createBucket creates a container. The location in the body has no meaning here. The ACL
// public-read makes the container public, as in Supabase.
func (c *call) createBucket() error {
	if err := c.checkBucketBody(); err != nil {
		return err
	}

	_, err := object.GetContainer(c.r.Context(), c.Database, server, object.ContainerRef{ID: c.name})
	if err == nil {
		return errOwned
	}
	if fault.Is(err, fault.NotFound) {
		_, err = object.CreateContainer(c.r.Context(), c.Database, server, object.NewContainer{Name: c.name,
			IsPublic: c.r.Header.Get("X-Amz-Acl") == publicRead})
	}

	switch {
	case object.IsReserved(c.name):
		return malformed("InvalidBucketName",
			"The bucket's name is a word of the paths of the Storage API: choose another one")
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

// checkBucketBody fails if the body has more than a location.
func (c *call) checkBucketBody() error {
	var in struct {
		XMLName xml.Name `xml:"CreateBucketConfiguration"`
		Others  []struct {
			XMLName xml.Name
		} `xml:",any"`
	}
	if c.body.length == 0 {
		return nil
	}
	if err := c.decode(&in); err != nil && (c.body.read > 0 || err != errMalformedXML) {
		return err
	}

	for _, other := range in.Others {
		if other.XMLName.Local != "LocationConstraint" {
			return fault.New(fault.Invalid, "The element %s implies functionality that is not implemented",
				other.XMLName.Local).WithCode("NotImplemented")
		}
	}

	return nil
}

func (c *call) deleteBucket() error {
	_, err := object.DeleteContainer(c.r.Context(), c.Database, server, c.bucket.Ref(), false)
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

// intParam returns a number from the query, at most limit, or missing without one.
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
