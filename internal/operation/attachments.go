package operation

import (
	"context"
	"io"
	"mime/multipart"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/socle-dev/socle/internal/fault"
)

// JSONWithFiles is a JSON body, or multipart/form-data whose first part has the body member as JSON
// and whose other parts are files. The input embeds [AttachedFiles].
func JSONWithFiles(member string) Body {
	form := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeObject, Required: []string{member},
		Properties: map[string]*huma.Schema{
			member: {Type: huma.TypeObject, AdditionalProperties: true,
				Description: "The first part: " + member + " as JSON."},
		},
		AdditionalProperties: &huma.Schema{
			Type:        huma.TypeString,
			Format:      "binary",
			Description: "A file. The name of the part is the UUID of its field.",
		}}}

	return Body{content: map[string]*huma.MediaType{multipartType: form}, member: member, hasDigest: true}
}

// AttachedFiles is embedded in an input whose JSON body files may accompany.
type AttachedFiles struct {
	parts  *multipart.Reader // nil: the body is JSON
	body   *pacedBody
	digest bodyDigest
}

// HasFiles reports whether the body may have files.
func (a *AttachedFiles) HasFiles() bool { return a.parts != nil }

// attach reads the first part but none of the files.
func (a *AttachedFiles) attach(
	ctx context.Context, rt *route, w http.ResponseWriter, r *http.Request,
) (body any, release func(), err error) {
	a.body = newPacedBody(w, r, maxBody+MaxFormOverhead)
	if a.parts, err = multipartReader(r); err != nil {
		return nil, noRelease, err
	}

	part, err := a.parts.NextRawPart()
	if err != nil {
		return nil, noRelease, malformedMultipart(err)
	}

	name := rt.op.Body.member
	if part.FormName() != name {
		return nil, noRelease, fault.OnField(fault.Invalid, name, "out_of_order", "must be the first part")
	}

	text, release, err := rt.readText(ctx, io.LimitReader(part, maxBody+1), -1, maxBody)
	if fault.Is(err, fault.Invalid) {
		return nil, release, malformedMultipart(err)
	}
	if err != nil {
		return nil, release, err
	}

	v, err := rt.decode(ctx, text, rt.shape.members[name])
	if err != nil {
		return nil, release, malformed(err, name)
	}

	return map[string]any{name: v}, release, nil
}

// AttachedFile is a multipart part with a file.
type AttachedFile struct {
	*multipart.Part
	digest *bodyDigest
}

// NextFile returns the next file, or nil at the end.
func (a *AttachedFiles) NextFile() (*AttachedFile, error) {
	a.body.remaining = MaxFormOverhead

	part, err := a.parts.NextRawPart()
	if err == io.EOF {
		return nil, nil
	}
	if err != nil {
		return nil, malformedMultipart(err)
	}

	a.body.remaining = unlimited // the container limits the file size
	a.digest.writeNames(part.FormName(), part.FileName(), part.Header.Get("Content-Type"))

	return &AttachedFile{part, &a.digest}, nil
}

// Read reads the file. A truncated file is a malformed body.
func (f *AttachedFile) Read(b []byte) (int, error) {
	n, err := f.Part.Read(b)
	f.digest.writeBytes(b[:n])

	if err != nil && err != io.EOF {
		err = malformedMultipart(err)
	}

	return n, err
}
