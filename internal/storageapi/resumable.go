package storageapi

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/tus"
)

// Resumable uploads by the tus protocol 1.0, with the extensions creation (with upload, deferred
// length), termination and expiration. Upload-Metadata has bucketName, objectName, contentType,
// cacheControl and metadata. Failures have the true status, which tells clients whether to retry.

const (
	tusPath     = "/upload/resumable"
	tusSignPath = tusPath + "/sign"
)

// tusHeaders sets the headers that every resumable upload response has.
func tusHeaders(h http.Header) {
	tus.SetHeaders(h)
	tus.SetCapabilities(h, "creation,creation-with-upload,creation-defer-length,termination,expiration",
		object.MaxFileSize)
}

// tus handles a resumable upload request with a key or token.
func (c *call) tus(rest string) error { return c.serveTus(rest, false) }

// tusSigned handles a resumable upload request with a signed URL's token in the header x-signature.
func (c *call) tusSigned(rest string) error { return c.serveTus(rest, true) }

func (c *call) serveTus(rest string, hasSignature bool) error {
	if c.r.Header.Get("Tus-Resumable") != tus.Version {
		return fault.New(fault.Precondition, "Tus-Resumable must be "+tus.Version)
	}

	id := strings.Trim(rest, "/")
	if c.r.Method == http.MethodPost && id == "" {
		return c.createTus(hasSignature)
	}

	upload, err := c.findTus(id, hasSignature)
	if err != nil {
		return err
	}

	switch c.r.Method {
	case http.MethodHead:
		return c.headTus(upload)
	case http.MethodPatch:
		return c.patchTus(upload)
	case http.MethodDelete:
		return c.deleteTus(upload)
	}

	return fault.New(fault.NotFound, "Route %s:%s not found", c.r.Method, c.r.URL.Path).WithCode("RouteNotFound")
}

// grantTus makes the signer named by the token in x-signature the actor. Policies decided when it
// was signed.
func (c *call) grantTus(path string) (grant, error) {
	g, _, err := c.verify(c.r.Header.Get("X-Signature"), scopeUpload, path)
	if err == nil {
		c.actor = actor.Actor{Role: actor.ServiceRole, Subject: g.Owner}
	}

	return g, err
}

// findTus returns the upload in the path.
func (c *call) findTus(text string, hasSignature bool) (object.Resumable, error) {
	missing := fault.New(fault.NotFound, "The upload does not exist, or has expired")
	id, err := uuid.Parse(text)
	if err != nil {
		return object.Resumable{}, missing
	}

	upload, err := object.GetResumable(c.r.Context(), c.Database, id)
	if err == nil && hasSignature {
		if _, err := c.grantTus(upload.BucketID + "/" + upload.FullFileName); err != nil {
			return upload, err
		}
	}
	if err == nil {
		err = upload.Access(c.r.Context(), c.Database, c.actor)
	}
	if fault.Is(err, fault.NotFound) {
		err = missing
	}

	return upload, err
}

// createTus starts an upload, and stores the first bytes if the request has some.
func (c *call) createTus(hasSignature bool) error {
	header := c.r.Header.Get("Upload-Metadata")
	metadata, err := tusMetadata(header)
	if err != nil {
		return err
	}

	n := object.NewFile{Upsert: c.r.Header.Get("X-Upsert") == "true"}
	path := metadata["bucketName"] + "/" + metadata["objectName"]
	if hasSignature {
		g, err := c.grantTus(path)
		if err != nil {
			return err
		}
		n.Upsert = g.Upsert
	}

	b, name, err := c.bucketOf(path)
	if err != nil {
		return err
	}

	n.FullFileName, n.MimeType, n.MetadataHeader = name, metadata["contentType"], header
	if n.Length, err = c.tusLength(); err != nil {
		return err
	}
	if seconds := metadata["cacheControl"]; seconds != "" {
		n.CacheControl = "max-age=" + seconds
	}
	if err := checkCacheControl(n.CacheControl); err != nil {
		return err
	}
	if n.Metadata, err = checkMetadata([]byte(metadata["metadata"])); err != nil {
		return err
	}

	upload, err := object.CreateResumable(c.r.Context(), c.Database, c.actor, b.Ref(), n)
	if err != nil {
		return keyError(err, name)
	}

	c.w.Header().Set("Location", strings.TrimSuffix(c.r.URL.EscapedPath(), "/")+"/"+upload.UUID.String())
	if c.r.Header.Get("Content-Type") == tus.ContentType {
		err = c.appendTus(&upload, 0)
	} else {
		err = c.finishTus(&upload) // an empty object is complete
	}
	if err != nil {
		return err
	}

	c.writeTus(http.StatusCreated, upload)
	return nil
}

// tusLength returns the announced length, or -1 if the client sends it later.
func (c *call) tusLength() (int64, error) {
	text, isDeferred := c.r.Header.Get("Upload-Length"), c.r.Header.Get("Upload-Defer-Length") == "1"
	if text == "" && isDeferred {
		return -1, nil
	}

	length, err := strconv.ParseInt(text, 10, 64)
	if err != nil || length < 0 || isDeferred {
		return 0, fault.New(fault.Invalid, "Upload-Length must be a number of bytes, or Upload-Defer-Length 1").
			WithCode("InvalidRequest")
	}

	return length, nil
}

// tusMetadata parses the Upload-Metadata header.
func tusMetadata(header string) (map[string]string, error) {
	metadata, err := tus.ParseMetadata(header)
	for _, value := range metadata {
		if err == nil && !pg.Storable(value) {
			err = tus.ErrMetadata
		}
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "Upload-Metadata must be pairs of distinct keys and base64 values, UTF-8 "+
			"without null characters, up to %d bytes", tus.MaxMetadata).WithCode("InvalidRequest").WithCause(err)
	}

	return metadata, nil
}

// headTus responds with the offset. Clients take the full offset as proof that the object exists.
func (c *call) headTus(upload object.Resumable) error {
	if err := c.finishTus(&upload); err != nil {
		return err
	}

	c.writeTus(http.StatusOK, upload)
	return nil
}

func (c *call) patchTus(upload object.Resumable) error {
	if c.r.Header.Get("Content-Type") != tus.ContentType {
		return fault.New(fault.Invalid, "Content-Type must be "+tus.ContentType).WithCode("InvalidRequest")
	}

	offset, err := strconv.ParseInt(c.r.Header.Get("Upload-Offset"), 10, 64)
	if err != nil || offset < 0 {
		return fault.New(fault.Invalid, "Upload-Offset must be a number of bytes").WithCode("InvalidRequest")
	}

	if err := c.appendTus(&upload, offset); err != nil {
		return err
	}

	c.writeTus(http.StatusNoContent, upload)
	return nil
}

// appendTus stores the body as the next part.
func (c *call) appendTus(upload *object.Resumable, offset int64) error {
	length := int64(-1)
	if c.r.Header.Get("Upload-Length") != "" {
		var err error
		if length, err = c.tusLength(); err != nil {
			return err
		}
	}

	discard, err := object.AppendResumable(c.r.Context(), c.Database, c.Blobs, c.actor, upload,
		object.Part{Offset: offset, Length: length, Content: httpx.NewPacedReader(c.w, c.r)})
	if discard {
		c.Discard(c.r.Context(), c.Database.UUID)
	}

	return err
}

// finishTus creates the object for a complete upload, unless it exists.
func (c *call) finishTus(upload *object.Resumable) error {
	discard, err := object.FinishResumable(c.r.Context(), c.Database, c.Blobs, c.actor, upload)
	if discard {
		c.Discard(c.r.Context(), c.Database.UUID)
	}

	return err
}

func (c *call) deleteTus(upload object.Resumable) error {
	if err := object.DeleteResumable(c.r.Context(), c.Database, upload.ContainerUUID, upload.UUID); err != nil {
		return err
	}

	c.Discard(c.r.Context(), c.Database.UUID)
	c.w.WriteHeader(http.StatusNoContent)

	return nil
}

// writeTus writes an upload's state as response.
func (c *call) writeTus(status int, upload object.Resumable) {
	upload.State().SetHeaders(c.w.Header())
	c.w.WriteHeader(status)
}
