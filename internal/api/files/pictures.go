package files

import (
	"context"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/picture"
	"github.com/socle-dev/socle/internal/projectdb"
)

const picturesNote = "With `width`, `height`, `format` or `quality`, a picture (JPEG, PNG, GIF, WebP) is scaled " +
	"and re-encoded: upright, without metadata, and never enlarged."

// PictureQuery is embedded in the input when an operation returns a file, or a variant if the file
// is a picture.
type PictureQuery struct {
	Width   int    `query:"width" minimum:"1" maximum:"4096" doc:"Width in pixels. Without height, the aspect ratio is kept."`
	Height  int    `query:"height" minimum:"1" maximum:"4096" doc:"Height in pixels. Without width, the aspect ratio is kept."`
	Fit     string `query:"fit" enum:"cover,contain,fill" doc:"How to fit into width and height: cover (default) fills them and crops the rest, contain stays within them, fill stretches."`
	Format  string `query:"format" enum:"jpeg,png" doc:"Output format. Default: that of the file; PNG for GIF; for WebP, JPEG if opaque, else PNG."`
	Quality int    `query:"quality" minimum:"1" maximum:"100" doc:"JPEG quality. Default: 80."`
}

// SignedPicture is a signed URL's [PictureQuery].
type SignedPicture struct {
	Width   int    `json:"width,omitempty" minimum:"1" maximum:"4096"`
	Height  int    `json:"height,omitempty" minimum:"1" maximum:"4096"`
	Fit     string `json:"fit,omitempty" enum:"cover,contain,fill"`
	Format  string `json:"format,omitempty" enum:"jpeg,png"`
	Quality int    `json:"quality,omitempty" minimum:"1" maximum:"100"`
}

// check fails with Unprocessable if the picture selects no variant, or an invalid one.
func (p *SignedPicture) check() error {
	switch {
	case p == nil:
		return nil
	case *p == SignedPicture{}:
		return fault.OnField(fault.Unprocessable, "picture", "required",
			"must set at least one property of the variant")
	case PictureQuery(*p).hasUselessFit():
		return fault.OnField(fault.Unprocessable, "picture.fit", "not_applicable", "needs both width and height")
	}

	return nil
}

func (q PictureQuery) hasUselessFit() bool { return q.Fit != "" && (q.Width == 0 || q.Height == 0) }

// restrictTo returns the variant that the URL was signed for. If the URL was signed for the whole
// file, it returns the variant in the query.
func (q PictureQuery) restrictTo(terms *urlTerms) (PictureQuery, error) {
	if terms.Picture == nil {
		return q, nil
	}
	if q != (PictureQuery{}) {
		return q, fault.New(fault.Unauthenticated, "the URL is signed for another variant of the picture").
			WithCode("invalid_signature")
	}

	return PictureQuery(*terms.Picture), nil
}

// spec returns the requested variant, or nil for the file itself.
func (q PictureQuery) spec() (*picture.Spec, error) {
	if q == (PictureQuery{}) {
		return nil, nil
	}
	if q.hasUselessFit() {
		return nil, fault.OnField(fault.Invalid, "fit", "not_applicable", "needs both width and height")
	}

	return &picture.Spec{Width: q.Width, Height: q.Height, Fit: q.Fit, Format: q.Format, Quality: q.Quality}, nil
}

// openFile opens a file or a picture variant. No policy decides about downloads by the platform
// API.
func (s *Server) openFile(
	ctx context.Context, p *projectdb.Project, r object.FileRef, q PictureQuery,
) (download, error) {
	spec, err := q.spec()
	if err != nil {
		return download{}, err
	}

	if spec == nil {
		return newDownload(object.OpenFile(ctx, p, s.Blobs, member(ctx), r))
	}

	return newDownload(s.Variants.Open(ctx, p, member(ctx), r, *spec))
}

func newDownload(f object.StoredFile, content *object.Content, err error) (download, error) {
	return download{f.File, content}, err
}
