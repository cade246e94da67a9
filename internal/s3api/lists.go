package s3api

import (
	"encoding/xml"
	"slices"

	"github.com/socle-dev/socle/internal/object"
)

type listedObject struct {
	Key          string
	VersionID    string `xml:"VersionId,omitempty"`
	IsLatest     bool   `xml:",omitempty"`
	LastModified string
	ETag         string
	Size         int64
	StorageClass string
	Owner        *owner
}

type commonPrefix struct{ Prefix string }

// listResult is the result in both list versions.
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

// page is a page of a bucket's objects.
type page struct {
	prefix, delimiter string
	limit             int
	hasMore           bool
	last              object.Entry // last entry in a truncated page
	objects           []object.Entry
	prefixes          []commonPrefix
	encode            func(string) string // key encoding in the response
}

// list reads the page after a key, or from a position if there is one.
func (c *call) list(after, from string) (page, error) {
	p := page{prefix: c.query.Get("prefix"), delimiter: c.query.Get("delimiter")}

	var err error
	if p.encode, err = c.encoding(); err != nil {
		return p, err
	}
	if p.limit, err = c.intParam("max-keys", maxList, maxList); err != nil {
		return p, err
	}
	if !object.IsNamePrefix(p.prefix) || !object.IsNamePrefix(p.delimiter) || len(p.delimiter) > 1 {
		return p, malformed("InvalidArgument",
			"The prefix must be a beginning of a key, the delimiter one ASCII character")
	}
	if !object.IsNamePrefix(after) {
		return p, malformed("InvalidArgument", "The marker must be a key")
	}

	keys := object.EntryListing{Prefix: p.prefix, Delimiter: p.delimiter, Limit: p.limit + 1, From: from}
	if from == "" {
		keys.After = after
	}
	if isFolder(after) {
		keys.Limit++ // for this folder's marker, whose name sorts after the key
	}

	var entries []object.Entry
	if p.limit > 0 {
		if entries, err = object.ListEntries(c.r.Context(), c.Database, server, c.bucket.UUID, keys); err != nil {
			return p, err
		}
	}

	entries = slices.DeleteFunc(entries, func(e object.Entry) bool {
		return e.UUID != nil && isFolder(after) && e.Name == fileName(after)
	})
	if len(entries) > p.limit {
		p.last, p.hasMore = entries[p.limit-1], true
		entries = entries[:p.limit]
	}

	for _, e := range entries {
		if e.UUID == nil {
			p.prefixes = append(p.prefixes, commonPrefix{p.encode(e.Name)})
		} else {
			p.objects = append(p.objects, e)
		}
	}

	return p, nil
}

// encoding returns the key encoding for a response.
func (c *call) encoding() (func(string) string, error) {
	switch c.query.Get("encoding-type") {
	case "":
		return func(s string) string { return s }, nil
	case "url":
		return func(s string) string { return escape(s, true) }, nil
	}

	return nil, malformed("InvalidArgument", "Invalid Encoding Method specified in Request")
}

func (p page) item(e object.Entry) listedObject {
	return listedObject{Key: p.encode(keyOf(e.Name, p.prefix)), LastModified: timestamp(*e.UpdatedAt),
		ETag: tag(e.SHA256), Size: *e.Size, StorageClass: "STANDARD"}
}

// listObjects lists objects by version 1 or 2.
func (c *call) listObjects() error {
	q := c.query
	second := q.Get("list-type") == "2"
	if q.Has("list-type") && !second {
		return malformed("InvalidArgument", "Invalid List Type specified in Request")
	}

	after, from := q.Get("marker"), ""
	if second {
		var err error
		after = q.Get("start-after")
		if from, err = decodeToken(q.Get("continuation-token")); err != nil {
			return err
		}
	}

	p, err := c.list(after, from)
	if err != nil {
		return err
	}

	result := listResult{Name: c.name, Prefix: p.encode(p.prefix), Delimiter: p.encode(p.delimiter), MaxKeys: p.limit,
		EncodingType: q.Get("encoding-type"), IsTruncated: p.hasMore, CommonPrefixes: p.prefixes}
	for _, e := range p.objects {
		item := p.item(e)
		if !second || q.Get("fetch-owner") == "true" {
			item.Owner = new(c.owner())
		}
		result.Contents = append(result.Contents, item)
	}

	if second {
		result.StartAfter, result.Token = p.encode(after), q.Get("continuation-token")
		result.KeyCount = new(len(p.objects) + len(p.prefixes))
		if p.hasMore {
			result.NextToken = encodeToken(p.last.Following())
		}
		return c.respond(result)
	}

	result.Marker = new(p.encode(after))
	if p.hasMore {
		result.NextMarker = p.encode(p.last.Name)
	}

	return c.respond(result)
}

// listVersions lists each object's only version.
func (c *call) listVersions() error {
	marker, version := c.query.Get("key-marker"), c.query.Get("version-id-marker")
	if version != "" && (version != nullVersion || marker == "") {
		return malformed("InvalidArgument", "Invalid version id specified")
	}

	p, err := c.list(marker, "")
	if err != nil {
		return err
	}

	result := struct {
		XMLName             xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListVersionsResult"`
		Name                string
		Prefix              string
		KeyMarker           string
		VersionIDMarker     string `xml:"VersionIdMarker"`
		NextKeyMarker       string `xml:",omitempty"`
		NextVersionIDMarker string `xml:"NextVersionIdMarker,omitempty"`
		Delimiter           string `xml:",omitempty"`
		MaxKeys             int
		EncodingType        string `xml:",omitempty"`
		IsTruncated         bool
		Version             []listedObject
		CommonPrefixes      []commonPrefix
	}{Name: c.name, Prefix: p.encode(p.prefix), KeyMarker: p.encode(marker), VersionIDMarker: version,
		Delimiter: p.encode(p.delimiter), MaxKeys: p.limit, EncodingType: c.query.Get("encoding-type"),
		IsTruncated: p.hasMore, CommonPrefixes: p.prefixes}

	for _, e := range p.objects {
		item := p.item(e)
		item.VersionID, item.IsLatest, item.Owner = nullVersion, true, new(c.owner())
		result.Version = append(result.Version, item)
	}
	if p.hasMore {
		result.NextKeyMarker, result.NextVersionIDMarker = p.encode(p.last.Name), nullVersion
		if p.last.UUID == nil { // a prefix has no version
			result.NextVersionIDMarker = ""
		}
	}

	return c.respond(result)
}
