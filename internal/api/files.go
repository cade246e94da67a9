package api

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/object"
	"socle/internal/platform"
	"socle/internal/tenant"
)

func (s *Server) registerFiles() {
	within(s, listFiles, s.listFiles, nil)
	within(s, createFile, s.createFile, nil)
	within(s, downloadFile, s.downloadFile, nil)
	within(s, readFile, s.readFile, nil)
}

var listFiles = Operation{
	ID: "listFiles", Method: "GET", Path: "/containers/{containerUUID}/files", Summary: "List the files in a container",
	Access: project(platform.Viewer), Errors: specified, Wrapped: true,
}

type listFilesInput struct {
	PageQuery
	Sort      string    `query:"sort" enum:"fullFileName,size,mimeType,createdAt,updatedAt" default:"createdAt"`
	Container uuid.UUID `path:"containerUUID" format:"uuid"`
}

func (s *Server) listFiles(ctx context.Context, p *tenant.Project, in *listFilesInput) (Answer[[]object.File, PageMetadata], error) {
	page := in.by(in.Sort)
	files, total, err := object.ListFiles(ctx, p, in.Container, page)
	return listOf(files, page, total), err
}

var createFile = Operation{
	ID: "createFile", Method: "POST", Path: "/containers/{containerUUID}/files", Summary: "Upload a file",
	Access: project(platform.Developer), Errors: []int{400, 401, 403, 404, 409, 413, 422, 500},
	Notes: "A multipart body: `full_file_name`, with folders if you like, and after it `file`. Without `full_file_name` the file's own name counts.",
}

var uploadSchema = &huma.Schema{Type: huma.TypeObject, Required: []string{"file"}, Properties: map[string]*huma.Schema{
	"full_file_name": {Type: huma.TypeString}, "file": {Type: huma.TypeString, Format: "binary"}}}

type createFileInput struct {
	Container uuid.UUID `path:"containerUUID" format:"uuid"`
	Upload
}

func (s *Server) createFile(ctx context.Context, p *tenant.Project, in *createFileInput) (object.File, error) {
	name, mimeType, err := in.open()
	if err != nil {
		return object.File{}, err
	}
	settings, err := s.platform.Settings(ctx)
	if err != nil {
		return object.File{}, err
	}
	return object.CreateFile(ctx, p, s.blobs, caller(ctx).User, in.Container, object.NewFile{
		FullFileName: name, MimeType: mimeType, Content: in, Most: settings.MaxUploadSize})
}

var downloadFile = Operation{
	ID: "downloadFile", Method: "GET", Path: "/containers/{containerUUID}/files/{fileUUID}/download", Summary: "Download a file",
	Access: project(platform.Viewer), Errors: []int{400, 401, 404, 500},
	Notes: "The bytes, or a range of them.",
}

type downloadFileInput struct {
	Container uuid.UUID `path:"containerUUID" format:"uuid"`
	File      uuid.UUID `path:"fileUUID" format:"uuid"`
}

func (s *Server) downloadFile(ctx context.Context, p *tenant.Project, in *downloadFileInput) (download, error) {
	f, content, err := object.OpenFile(ctx, p, s.blobs, in.Container, in.File)
	return download{f, content}, err
}

var readFile = Operation{
	ID: "readFile", Method: "GET", Path: "/files/{projectUUID}/{containerUUID}/{fullFileName...}", Summary: "Read a file by its name",
	Access: publicProject(platform.Viewer), Errors: []int{400, 401, 404, 500},
	Notes: "The container's `url`, and after it the file's full name. No token is needed if the container is public.",
}

type readFileInput struct {
	Project   uuid.UUID `path:"projectUUID" format:"uuid"`
	Container uuid.UUID `path:"containerUUID" format:"uuid"`
	Name      string    `path:"fullFileName"`
}

func (s *Server) readFile(ctx context.Context, p *tenant.Project, in *readFileInput) (download, error) {
	c, err := object.GetContainer(ctx, p, in.Container)
	if err != nil {
		return download{}, err
	}
	if !c.IsPublic && !caller(ctx).Role.AtLeast(platform.Viewer) {
		return download{}, fault.New(fault.NotFound, "there is no such thing") // as for a container that is not there
	}
	f, content, err := object.OpenFileByName(ctx, p, s.blobs, in.Container, in.Name)
	return download{f, content}, err
}

// download answers with a file's bytes. Whatever they are, a browser must not take them for a page of ours.
type download struct {
	file    object.File
	content io.ReadSeekCloser
}

// inline are the types that a browser may show in place; it offers all others for saving.
var inline = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "text/plain", "audio/", "video/", "application/pdf"}

const (
	mostRange   = 200       // bytes of a Range header; a longer one is ignored, as a server may
	slowestRead = 16 << 10  // bytes per second that a client must take in the long run
	readGrace   = time.Hour // beside that
)

// ServeHTTP writes the file, or the range of it that is asked for.
func (d download) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer d.content.Close()
	disposition := "attachment"
	if slices.ContainsFunc(inline, func(prefix string) bool { return strings.HasPrefix(d.file.MimeType, prefix) }) {
		disposition = "inline"
	}
	h := w.Header()
	h.Set("Content-Type", d.file.MimeType)
	h.Set("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": path.Base(d.file.FullFileName)}))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("Cache-Control", "private, no-cache") // who may read it is asked each time
	h.Set("ETag", `"`+d.file.UUID.String()+`"`) // a file's bytes never change
	if len(r.Header.Get("Range")) > mostRange {
		r.Header.Del("Range")
	}
	deadline := time.Now().Add(readGrace + time.Duration(d.file.Size/slowestRead)*time.Second)
	if err := http.NewResponseController(w).SetWriteDeadline(deadline); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return
	}
	http.ServeContent(&ranged{ResponseWriter: w, refuse: func() {
		Fail(w, r, http.StatusRequestedRangeNotSatisfiable, "invalid_range", "the file has no such range")
	}}, r, "", d.file.UpdatedAt, d.content)
}

// ranged answers with an envelope where net/http refuses a range in plain text.
type ranged struct {
	http.ResponseWriter
	refuse  func()
	refused bool
}

func (w *ranged) WriteHeader(status int) {
	if status != http.StatusRequestedRangeNotSatisfiable {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.refused = true
	w.refuse()
}

func (w *ranged) Write(b []byte) (int, error) {
	if w.refused {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// ReadFrom lets a file go to the connection without passing through this process.
func (w *ranged) ReadFrom(r io.Reader) (int64, error) { return io.Copy(w.ResponseWriter, r) }
