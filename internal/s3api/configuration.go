package s3api

import (
	"encoding/xml"
	"net/http"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/object"
)

// configuration is a sub-resource that no bucket or object has here. Reads answer as Amazon does
// for one that was never configured: clients read it in passing. Deletes succeed, since there is
// nothing to delete. Writes are refused, like anything unknown.
type configuration struct {
	resource string
	root     string // response element
	content  string // XML in root

	missing *fault.Error // read failure, nil if a read answers root
	// byID is the root element for a list of named configurations, whose read by name fails with
	// missing.
	byID    string
	deletes bool
}

func missing(code, message string) *fault.Error {
	return fault.New(fault.NotFound, "%s", message).WithCode(code)
}

var (
	errNoVersion = missing("NoSuchVersion", "The specified version does not exist.")

	errNoConfiguration = missing("NoSuchConfiguration", "The specified configuration does not exist.")
	errNoLock          = malformed("InvalidRequest", "Bucket is missing Object Lock Configuration")
)

var bucketConfigurations = []configuration{
	{resource: "location", root: "LocationConstraint"},
	{resource: "versioning", root: "VersioningConfiguration"},
	{resource: "accelerate", root: "AccelerateConfiguration"},
	{resource: "logging", root: "BucketLoggingStatus"},
	{resource: "notification", root: "NotificationConfiguration"},
	{resource: "requestPayment", root: "RequestPaymentConfiguration", content: "<Payer>BucketOwner</Payer>"},
	{resource: "abac", root: "AbacStatus", content: "<Status>Disabled</Status>"},
	{resource: "ownershipControls", root: "OwnershipControls",
		content: "<Rule><ObjectOwnership>BucketOwnerEnforced</ObjectOwnership></Rule>"},

	{resource: "tagging", missing: missing("NoSuchTagSet", "The TagSet does not exist"), deletes: true},
	{resource: "policy", missing: errNoPolicy, deletes: true},
	{resource: "policyStatus", missing: errNoPolicy},
	{resource: "lifecycle", deletes: true,
		missing: missing("NoSuchLifecycleConfiguration", "The lifecycle configuration does not exist")},
	{resource: "cors", deletes: true,
		missing: missing("NoSuchCORSConfiguration", "The CORS configuration does not exist")},
	{resource: "website", deletes: true,
		missing: missing("NoSuchWebsiteConfiguration", "The specified bucket does not have a website configuration")},
	{resource: "encryption", deletes: true,
		missing: missing("ServerSideEncryptionConfigurationNotFoundError",
			"The server side encryption configuration was not found")},
	{resource: "replication", deletes: true,
		missing: missing("ReplicationConfigurationNotFoundError", "The replication configuration was not found")},
	{resource: "publicAccessBlock", deletes: true,
		missing: missing("NoSuchPublicAccessBlockConfiguration",
			"The public access block configuration was not found")},
	{resource: "object-lock",
		missing: missing("ObjectLockConfigurationNotFoundError",
			"Object Lock configuration does not exist for this bucket")},
	{resource: "metadataConfiguration", missing: errNoMetadata},
	{resource: "metadataTable", missing: errNoMetadata},

	{resource: "analytics", byID: "ListBucketAnalyticsConfigurationResult", missing: errNoConfiguration},
	{resource: "inventory", byID: "ListInventoryConfigurationsResult", missing: errNoConfiguration},
	{resource: "metrics", byID: "ListMetricsConfigurationsResult", missing: errNoConfiguration},
	{resource: "intelligent-tiering", byID: "ListBucketIntelligentTieringConfigurationsOutput",
		missing: errNoConfiguration},
}

var (
	errNoPolicy   = missing("NoSuchBucketPolicy", "The bucket policy does not exist")
	errNoMetadata = missing("MetadataConfigurationNotFound", "The metadata configuration was not found")
)

var objectConfigurations = []configuration{
	{resource: "tagging", root: "Tagging", content: "<TagSet></TagSet>", deletes: true},
	{resource: "legal-hold", missing: errNoLock},
	{resource: "retention", missing: errNoLock},
}

// document is an XML response with constant content.
type document struct {
	XMLName xml.Name
	Content string `xml:",innerxml"`
}

// configurationRoutes returns the operations on configurations, all with the query parameters
// params.
func configurationRoutes(all []configuration, params ...string) []route {
	var routes []route
	for _, f := range all {
		if f.byID != "" {
			params = []string{"id", "continuation-token"}
		}

		routes = append(routes, route{method: "GET", resource: f.resource, params: params,
			serve: func(c *call) error { return c.getConfiguration(f) }})
		if f.deletes || f.byID != "" {
			routes = append(routes, route{method: "DELETE", resource: f.resource, params: params,
				serve: func(c *call) error { return c.deleteConfiguration(f) }})
		}
	}

	return routes
}

func (c *call) getConfiguration(f configuration) error {
	if err := c.findKey(); err != nil {
		return err
	}

	switch {
	case f.byID != "" && !c.query.Has("id"):
		f.root, f.content = f.byID, "<IsTruncated>false</IsTruncated>"
	case f.missing != nil:
		return f.missing
	}

	return c.respond(document{xml.Name{Space: namespace, Local: f.root}, f.content})
}

func (c *call) deleteConfiguration(f configuration) error {
	if err := c.findKey(); err != nil {
		return err
	}
	if f.byID != "" {
		return f.missing
	}

	return c.empty(http.StatusNoContent)
}

// findKey fails unless the request's object exists. A bucket request has none.
func (c *call) findKey() error {
	if c.key == "" {
		return nil
	}

	_, err := c.describe()
	return err
}

// describe returns the request's object without content.
func (c *call) describe() (object.StoredFile, error) {
	o, err := object.GetFile(c.r.Context(), c.Database, server,
		object.FileRef{Container: c.bucket.UUID, Name: fileName(c.key)})
	if fault.Is(err, fault.NotFound) {
		err = errNoKey
	}

	return o, err
}

// getACL answers a bucket's or an object's ACL: the owner may do all.
func (c *call) getACL() error {
	if err := c.findKey(); err != nil {
		return err
	}

	type grantee struct {
		Schema string `xml:"xmlns:xsi,attr"`
		Type   string `xml:"xsi:type,attr"`
		owner
	}
	type grant struct {
		Grantee    grantee
		Permission string
	}

	return c.respond(struct {
		XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ AccessControlPolicy"`
		Owner   owner
		Grants  []grant `xml:"AccessControlList>Grant"`
	}{Owner: c.owner(), Grants: []grant{{grantee{"http://www.w3.org/2001/XMLSchema-instance", "CanonicalUser",
		c.owner()}, "FULL_CONTROL"}}})
}

// getAttributes describes an object. It has neither parts nor checksums once it is complete.
func (c *call) getAttributes() error {
	var names []string
	for name := range strings.SplitSeq(c.r.Header.Get("X-Amz-Object-Attributes"), ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains([]string{"ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"}, name) {
			return malformed("InvalidArgument", "Invalid attribute name specified.")
		}
		names = append(names, name)
	}

	o, err := c.describe()
	if err != nil {
		return err
	}

	attributes := struct {
		XMLName      xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ GetObjectAttributesResponse"`
		ETag         string   `xml:",omitempty"`
		StorageClass string   `xml:",omitempty"`
		ObjectSize   *int64
	}{}
	if slices.Contains(names, "ETag") {
		attributes.ETag = strings.Trim(tag(o.SHA256), `"`)
	}
	if slices.Contains(names, "StorageClass") {
		attributes.StorageClass = "STANDARD"
	}
	if slices.Contains(names, "ObjectSize") {
		attributes.ObjectSize = &o.Size
	}

	c.w.Header().Set("Last-Modified", o.UpdatedAt.UTC().Format(http.TimeFormat))
	return c.respond(attributes)
}
