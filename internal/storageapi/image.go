package storageapi

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/picture"
)

const (
	minQuality = 20 // as in the contract; less is not worth the bytes
	maxQuality = 100
)

// transform describes a picture variant, in a URL's query or in the body that requests a signed
// URL.
type transform struct {
	Width, Height int
	Resize        string // cover, contain or fill; "" means cover
	Format        string // origin; "" means unchanged
	Quality       int
}

// transformOf reads a URL's query.
func transformOf(query url.Values) (transform, error) {
	t := transform{Resize: query.Get("resize"), Format: query.Get("format")}
	for name, n := range map[string]*int{"width": &t.Width, "height": &t.Height, "quality": &t.Quality} {
		text := query.Get(name)
		if text == "" {
			continue
		}

		var err error
		if *n, err = strconv.Atoi(text); err != nil || *n < 1 {
			return t, invalidTransform(name + " must be a number")
		}
	}

	return t, t.check()
}

// signedTransform reads a signed URL's variant.
func signedTransform(text string) (transform, error) {
	var t transform
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return t, invalidTransform("transform must have numbers for width, height and quality")
	}

	return t, t.check()
}

func (t transform) check() error {
	switch {
	case t.Width < 0 || t.Width > picture.MaxSide || t.Height < 0 || t.Height > picture.MaxSide:
		return invalidTransform("width and height must be 1 to " + strconv.Itoa(picture.MaxSide))
	case t.Quality != 0 && (t.Quality < minQuality || t.Quality > maxQuality):
		return invalidTransform("quality must be 20 to 100")
	case t.Resize != "" && t.Resize != picture.Cover && t.Resize != picture.Contain && t.Resize != picture.Fill:
		return invalidTransform("resize must be cover, contain or fill")
	case t.Format != "" && t.Format != "origin":
		return invalidTransform("format must be origin")
	}

	return nil
}

func (t transform) spec() picture.Spec {
	return picture.Spec{Width: t.Width, Height: t.Height, Fit: t.Resize, Quality: t.Quality}
}

// header returns the X-Transformations header, in the words that Supabase's renderer uses.
func (t transform) header() string {
	var parts []string
	if t.Height > 0 {
		parts = append(parts, "height:"+strconv.Itoa(t.Height))
	}
	if t.Width > 0 {
		parts = append(parts, "width:"+strconv.Itoa(t.Width))
	}
	if len(parts) > 0 {
		parts = append(parts, "resizing_type:"+resizingTypes[t.Resize])
	}
	if t.Quality > 0 {
		parts = append(parts, "quality:"+strconv.Itoa(t.Quality))
	}

	return strings.Join(parts, ",")
}

var resizingTypes = map[string]string{"": "fill", picture.Cover: "fill", picture.Contain: "fit", picture.Fill: "force"}

func invalidTransform(message string) error {
	return fault.New(fault.Invalid, "%s", message).WithCode("InvalidRequest")
}

// render sends a picture variant that the policies show.
func (c *call) render(path string) error {
	b, name, err := c.bucketOf(path)
	if err != nil {
		return err
	}

	t, err := transformOf(c.r.URL.Query())
	if err != nil {
		return err
	}

	return c.sendPicture(b, name, t, false)
}

// renderPublic sends a picture variant from a public bucket, about which no policy decides.
func (c *call) renderPublic(path string) error {
	b, name, err := c.readable(path)
	if err != nil {
		return err
	}
	if !b.IsPublic {
		return errNoBucket
	}

	t, err := transformOf(c.r.URL.Query())
	if err != nil {
		return err
	}

	return c.sendPicture(b, name, t, true)
}

// renderSigned sends the variant that a URL was signed for.
func (c *call) renderSigned(path string) error {
	g, b, err := c.verify(c.r.URL.Query().Get("token"), scopeRender, path)
	if err != nil {
		return err
	}

	t, err := signedTransform(g.Transform)
	if err != nil {
		return err
	}

	c.actor.Role = actor.ServiceRole // policies have decided when the URL was signed
	return c.sendPicture(b, g.Name, t, false)
}

// sendPicture sends a picture variant.
func (c *call) sendPicture(b object.Container, name string, t transform, public bool) error {
	f, content, err := c.Variants.Open(c.r.Context(), c.Database, c.actor, fileOf(b, name), t.spec())
	if fault.Is(err, fault.Unprocessable) { // no picture, or too large a one
		return invalidTransform(fault.Of(err).Detail)
	}
	if err != nil {
		return err
	}

	d := httpx.Download{Content: content, MimeType: f.MimeType, Size: f.Size, SHA256: f.SHA256, ETag: f.ETag(),
		Modified: f.UpdatedAt, CacheControl: "no-cache", Refuse: c.refuseRange}
	if !public {
		d.CacheControl = "private, no-cache"
	}

	c.w.Header().Set("X-Transformations", t.header())
	d.ServeHTTP(c.w, c.r)

	return nil
}
