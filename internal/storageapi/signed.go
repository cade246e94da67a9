package storageapi

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/object"
)

const (
	maxExpiry    = 100 * 365 * 24 * 60 * 60 // validity in seconds
	uploadExpiry = 2 * time.Hour
)

// expiry returns when a URL signed now expires. The seconds are a JSON number or, from Supabase's
// client for Python, a number in a string.
func expiry(seconds json.RawMessage) (int64, error) {
	n, err := strconv.ParseInt(strings.Trim(string(seconds), `"`), 10, 64)
	if err != nil || n < 1 || n > maxExpiry {
		return 0, fault.New(fault.Invalid, "body/expiresIn must be an integer from 1 to %d", maxExpiry).WithCause(err)
	}

	return time.Now().Unix() + n, nil
}

// signDownload signs an object's URL, or the URLs for several objects in a bucket.
func (c *call) signDownload(path string) error {
	var in struct {
		ExpiresIn json.RawMessage
		Paths     []string
		Transform json.RawMessage
	}
	if err := c.decode(&in); err != nil {
		return err
	}

	expires, err := expiry(in.ExpiresIn)
	if err != nil {
		return err
	}

	b, name, err := c.bucketOf(path)
	if err != nil {
		return err
	}
	if name == "" {
		return c.signDownloads(b, in.Paths, expires)
	}

	if _, err := object.GetFile(c.r.Context(), c.Database, c.actor, fileOf(b, name)); err != nil {
		return err
	}

	g := grant{Scope: scopeDownload, Bucket: b.UUID, Name: name, Expires: expires}
	root := "/object/sign/"
	if members := map[string]any{}; json.Unmarshal(in.Transform, &members) == nil && len(members) > 0 {
		if _, err := signedTransform(string(in.Transform)); err != nil {
			return err
		}
		g.Scope, g.Transform, root = scopeRender, string(in.Transform), "/render/image/sign/"
	}

	token, err := c.sign(g)
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, map[string]string{"signedURL": signedURL(root, b, name, token)})
}

// signDownloads signs URLs for the objects that the policies show. The others get an error.
func (c *call) signDownloads(b object.Container, names []string, expires int64) error {
	if len(names) == 0 || len(names) > maxNames {
		return fault.New(fault.Invalid, "body/paths must have 1 to %d items", maxNames)
	}

	present, err := object.FindFiles(c.r.Context(), c.Database, c.actor, b.UUID, names)
	if err != nil {
		return err
	}

	visible := map[string]bool{}
	for _, name := range present {
		visible[name] = true
	}

	type signed struct {
		Error     *string `json:"error"`
		Path      string  `json:"path"`
		SignedURL *string `json:"signedURL"`
	}
	message := "Either the object does not exist or you do not have access to it"

	all := make([]signed, 0, len(names))
	for _, name := range names {
		if !visible[name] {
			all = append(all, signed{&message, name, nil})
			continue
		}

		token, err := c.sign(grant{Scope: scopeDownload, Bucket: b.UUID, Name: name, Expires: expires})
		if err != nil {
			return err
		}

		url := signedURL("/object/sign/", b, name, token)
		all = append(all, signed{nil, name, &url})
	}

	return c.respond(http.StatusOK, all)
}

// signedURL returns an object's URL relative to [Prefix], which opens as it is. Supabase's clients
// escape it once more: verify takes both.
func signedURL(root string, b object.Container, name, token string) string {
	return (&url.URL{Path: root + b.ID + "/" + name, RawQuery: "token=" + token}).String()
}

// downloadSigned sends a signed URL's object.
func (c *call) downloadSigned(path string) error {
	g, b, err := c.verify(c.r.URL.Query().Get("token"), scopeDownload, path)
	if err != nil {
		return err
	}

	c.actor.Role = actor.ServiceRole // policies have decided when the URL was signed
	return c.send(b, g.Name, false)
}

// signUpload signs a URL for one upload, if the policies allow it now.
func (c *call) signUpload(path string) error {
	b, name, err := c.bucketOf(path)
	if err != nil {
		return err
	}

	upsert := c.r.Header.Get("X-Upsert") == "true"
	if err := object.CheckUpload(c.r.Context(), c.Database, c.actor, b.Ref(),
		object.NewFile{FullFileName: name, Upsert: upsert}); err != nil {
		return keyError(err, name)
	}

	token, err := c.sign(grant{Scope: scopeUpload, Bucket: b.UUID, Name: name, Owner: c.actor.Subject, Upsert: upsert,
		Expires: time.Now().Add(uploadExpiry).Unix()})
	if err != nil {
		return err
	}

	return c.respond(http.StatusOK, map[string]string{
		"url": signedURL("/object/upload/sign/", b, name, token), "token": token})
}

// uploadSigned stores a signed URL's object, owned by the signer.
func (c *call) uploadSigned(path string) error {
	g, b, err := c.verify(c.r.URL.Query().Get("token"), scopeUpload, path)
	if err != nil {
		return err
	}

	c.actor = actor.Actor{Role: actor.ServiceRole, Subject: g.Owner}
	return c.store(b, g.Name, g.Upsert)
}
