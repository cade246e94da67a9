package files

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/tus"
)

// IsTus reports whether a path belongs to resumable uploads.
func IsTus(path string) bool {
	rest, ok := strings.CutPrefix(path, "/containers/")
	_, rest, slash := strings.Cut(rest, "/")

	return ok && slash && (rest == "tus" || strings.HasPrefix(rest, "tus/"))
}

// Resumable uploads by the tus protocol 1.0, with the extensions creation (including deferred
// length), termination, expiration and checksum. The rules for files apply. Upload-Metadata has the
// file's name as filename and the type as filetype. Success responses follow tus; failures are
// envelopes.

const (
	tusUploads = "/containers/{containerUUID}/tus"
	tusUpload  = tusUploads + "/{uploadUUID}"
)

func (s *Server) registerTus(p *operation.Pipeline) {
	operation.HandleInProject(p, createTusUpload, s.createTusUpload, nil)
	operation.HandleInProject(p, getTusUpload, s.getTusUpload, nil)
	operation.HandleInProject(p, appendTusUpload, s.appendTusUpload, nil)
	operation.HandleInProject(p, deleteTusUpload, s.deleteTusUpload, nil)

	for _, path := range []string{tusUploads, tusUpload} {
		p.HandleFunc("OPTIONS "+path, func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			tusHeaders(h)
			tus.SetCapabilities(h, "creation,creation-defer-length,termination,expiration,checksum", object.MaxFileSize)
			h.Set("Tus-Checksum-Algorithm", tus.ChecksumAlgorithms)
			h.Set("Access-Control-Allow-Methods", "POST, HEAD, PATCH, DELETE")
			h.Set("Access-Control-Allow-Headers",
				"Authorization, Content-Type, Tus-Resumable, Upload-Checksum, Upload-Defer-Length, "+
					"Upload-Length, Upload-Metadata, Upload-Offset, X-HTTP-Method-Override, X-Project, X-Request-ID")
			h.Set("Access-Control-Max-Age", "86400")
			w.WriteHeader(http.StatusNoContent)
		})
	}
}

func tusHeaders(h http.Header) {
	tus.SetHeaders(h)
	h.Set("Access-Control-Allow-Origin", "*") // requests carry a token, never a cookie
	h.Set("Access-Control-Expose-Headers",
		"Location, Tus-Checksum-Algorithm, Tus-Extension, Tus-Max-Size, Tus-Resumable, Tus-Version, "+
			"Upload-Defer-Length, Upload-Expires, Upload-Length, Upload-Metadata, Upload-Offset, X-Request-Id")
}

// TusVersion is embedded in every tus request's input.
type TusVersion struct {
	Version string `header:"Tus-Resumable"`
}

func (v TusVersion) check() error {
	if v.Version != tus.Version {
		return fault.OnField(fault.Precondition, "Tus-Resumable", "unknown", "must be "+tus.Version)
	}
	return nil
}

// tusAnswer is a response without a body.
type tusAnswer struct {
	status   int
	upload   object.Resumable
	location string
}

// ServeHTTP writes the response.
func (a tusAnswer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	if a.upload.UUID != uuid.Nil {
		a.upload.State().SetHeaders(h)
	}
	if a.status == http.StatusCreated {
		h.Set("Location", a.location)
	}

	w.WriteHeader(a.status)
}

var createTusUpload = operation.Operation{
	ID: "createTusUpload", Method: "POST", Path: tusUploads, Protocol: tusHeaders,
	Access: operation.Project(account.Developer), Errors: []int{400, 401, 403, 404, 409, 412, 413, 422, 500},
}

type createTusUploadInput struct {
	Container uuid.UUID `path:"containerUUID" format:"uuid"`
	TusVersion
	Length   int    `header:"Upload-Length" minimum:"0" default:"-1"`
	Deferred string `header:"Upload-Defer-Length" enum:"1"`
	Metadata string `header:"Upload-Metadata"`
	Concat   string `header:"Upload-Concat"`
}

func (s *Server) createTusUpload(
	ctx context.Context, p *projectdb.Project, in *createTusUploadInput,
) (tusAnswer, error) {
	if err := in.check(); err != nil {
		return tusAnswer{}, err
	}

	if in.Concat != "" { // ignored, a partial upload would become a file
		return tusAnswer{}, fault.OnField(fault.Invalid, "Upload-Concat", "not_applicable", "must be omitted")
	}
	if (in.Length < 0) != (in.Deferred == "1") {
		return tusAnswer{}, fault.OnField(fault.Invalid, "Upload-Length", "required",
			"is required unless Upload-Defer-Length is 1, and must be omitted then")
	}

	metadata, err := tus.ParseMetadata(in.Metadata)
	if err != nil {
		return tusAnswer{}, fault.OnField(fault.Invalid, "Upload-Metadata", "invalid_format",
			"must be pairs of distinct keys and base64 values, up to %d bytes", tus.MaxMetadata).WithCause(err)
	}

	maxBytes, err := s.Platform.MaxUploadSize(ctx)
	if err != nil {
		return tusAnswer{}, err
	}

	u, err := object.CreateResumable(ctx, p, member(ctx), object.ContainerRef{UUID: in.Container}, object.NewFile{
		FullFileName: metadata["filename"],
		MimeType:     metadata["filetype"],
		Length:       int64(in.Length),
		Most:         maxBytes,

		MetadataHeader: in.Metadata,
	})
	if err != nil {
		return tusAnswer{}, err
	}

	if err := s.finishTus(ctx, p, &u); err != nil { // an empty file is complete
		return tusAnswer{}, err
	}

	return tusAnswer{
		http.StatusCreated, u, s.PublicURL + "/containers/" + in.Container.String() + "/tus/" + u.UUID.String(),
	}, nil
}

type tusInput struct {
	Container uuid.UUID `path:"containerUUID" format:"uuid"`
	Upload    uuid.UUID `path:"uploadUUID" format:"uuid"`
	TusVersion
}

// findTusUpload returns a container's upload.
func findTusUpload(ctx context.Context, p *projectdb.Project, container, upload uuid.UUID) (object.Resumable, error) {
	u, err := object.GetResumable(ctx, p, upload)
	if err == nil && u.ContainerUUID != container {
		err = fault.Missing()
	}
	if err == nil {
		err = u.Access(ctx, p, member(ctx))
	}

	return u, err
}

// finishTus creates the file for a complete upload, unless it exists.
func (s *Server) finishTus(ctx context.Context, p *projectdb.Project, u *object.Resumable) error {
	discard, err := object.FinishResumable(ctx, p, s.Blobs, member(ctx), u)
	if discard {
		s.Cleaner.Discard(ctx, p.UUID)
	}

	return err
}

var getTusUpload = operation.Operation{
	ID: "getTusUpload", Method: "HEAD", Path: tusUpload, Protocol: tusHeaders, Timeout: -1,
	Access: operation.Project(account.Developer), Errors: []int{400, 401, 403, 404, 409, 412, 413, 422, 500},
}

func (s *Server) getTusUpload(ctx context.Context, p *projectdb.Project, in *tusInput) (tusAnswer, error) {
	if err := in.check(); err != nil {
		return tusAnswer{}, err
	}

	u, err := findTusUpload(ctx, p, in.Container, in.Upload)
	if err != nil {
		return tusAnswer{}, err
	}

	// Clients take the full offset as proof that the file exists.
	if err := s.finishTus(ctx, p, &u); err != nil {
		return tusAnswer{}, err
	}

	return tusAnswer{status: http.StatusOK, upload: u}, nil
}

var appendTusUpload = operation.Operation{
	ID: "appendTusUpload", Method: "PATCH", Path: tusUpload, Protocol: tusHeaders,
	Access: operation.Project(account.Developer), Errors: []int{400, 401, 403, 404, 409, 412, 413, 422, 460, 500},
	Body: operation.RawFile,
}

type appendTusUploadInput struct {
	Container uuid.UUID `path:"containerUUID" format:"uuid"`
	UUID      uuid.UUID `path:"uploadUUID" format:"uuid"`
	TusVersion
	Offset   int    `header:"Upload-Offset" required:"true" minimum:"0"`
	Length   int    `header:"Upload-Length" minimum:"0" default:"-1"`
	Checksum string `header:"Upload-Checksum"`
	operation.Upload
}

func (s *Server) appendTusUpload(
	ctx context.Context, p *projectdb.Project, in *appendTusUploadInput,
) (tusAnswer, error) {
	if err := in.check(); err != nil {
		return tusAnswer{}, err
	}

	if in.MimeType() != tus.ContentType {
		return tusAnswer{}, fault.OnField(fault.Invalid, "Content-Type", "unknown", "must be "+tus.ContentType)
	}

	sum, err := tus.ParseChecksum(in.Checksum)
	if err != nil {
		return tusAnswer{}, err
	}

	u, err := findTusUpload(ctx, p, in.Container, in.UUID)
	if err != nil {
		return tusAnswer{}, err
	}

	discard, err := object.AppendResumable(ctx, p, s.Blobs, member(ctx), &u,
		object.Part{Offset: int64(in.Offset), Length: int64(in.Length), Content: in, Sum: sum})
	if discard {
		s.Cleaner.Discard(ctx, p.UUID)
	}

	return tusAnswer{status: http.StatusNoContent, upload: u}, err
}

var deleteTusUpload = operation.Operation{
	ID: "deleteTusUpload", Method: "DELETE", Path: tusUpload, Protocol: tusHeaders,
	Access: operation.Project(account.Developer), Errors: []int{400, 401, 403, 404, 412, 500},
}

func (s *Server) deleteTusUpload(ctx context.Context, p *projectdb.Project, in *tusInput) (tusAnswer, error) {
	if err := in.check(); err != nil {
		return tusAnswer{}, err
	}

	err := object.DeleteResumable(ctx, p, in.Container, in.Upload)
	if err == nil {
		s.Cleaner.Discard(ctx, p.UUID)
	}

	return tusAnswer{status: http.StatusNoContent}, err
}
